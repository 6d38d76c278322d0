"""The loop: turns, steps, queue, compaction. Awaits the rooms below, emits typed events."""
