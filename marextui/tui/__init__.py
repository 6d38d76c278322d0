"""The screen: draws engine events, sends commands, owns no truth."""
