"""Puts the engine together from settings and paths: the only place that knows every part's real implementation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from marextui import paths
from marextui.context.bulk import Scales
from marextui.context.strategies import strategy_named
from marextui.context.summary_needs import NEED_KINDS
from marextui.context.tokens import CountText, TokenLedger
from marextui.context.triggers import chosen_trigger
from marextui.engine.api import NEW, CannotStart
from marextui.engine.archive import Archive
from marextui.engine.bus import Bus
from marextui.engine.cache_watch import CacheWatch
from marextui.engine.compactor import Compactor
from marextui.engine.continuation import Continuation
from marextui.engine.desk import Desk, Memory
from marextui.engine.engine import Engine
from marextui.engine.meter import Meter
from marextui.engine.modelctl import ModelControl
from marextui.engine.omitter import Omissions, Omitter
from marextui.engine.originals import Originals
from marextui.engine.permissions import Decision, Permissions
from marextui.engine.policy import Policy
from marextui.engine.ports import CalibrationFile, Clock, Ids, RandomIds, SystemClock
from marextui.engine.project import ProjectDesk, ProjectFiles, local_day
from marextui.engine.quota import WithinQuota
from marextui.engine.recaller import ConversationRecaller
from marextui.engine.setup import Setup
from marextui.engine.state import EngineState
from marextui.engine.summariser import NOT_BESIDE, Summariser
from marextui.engine.toolrun import SeenFiles, Titles, ToolRunner
from marextui.engine.usage import Journal, UsageBook
from marextui.engine.warm import StateFiles, WarmResume
from marextui.models.hub import Hub
from marextui.models.tokenizer import TokenizerError, load_counter
from marextui.models.types import ModelHub
from marextui.settings import Settings
from marextui.store.calibration import CalibrationStore
from marextui.store.database import StoreError
from marextui.store.log import LogStore
from marextui.store.memory import MemoryStore
from marextui.store.omissions import OmissionStore
from marextui.store.open_elsewhere import OpenConversations
from marextui.store.project import ProjectStore
from marextui.store.usage import UsageJournal
from marextui.store.warm import WarmStates
from marextui.tools import titles
from marextui.tools.box import default_toolbox
from marextui.tools.memory_page import MemoryPage
from marextui.tools.read_state import ReadState
from marextui.tools.tracker import Tracker
from marextui.tools.types import ToolBox


@dataclass(slots=True)
class Parts:
    """Replaceable parts; tests and replays bring their own."""

    hub: ModelHub
    log: LogStore
    omissions: Omissions
    memory: Memory
    journal: Journal | None
    box: ToolBox
    titles: Titles
    count: CountText
    clock: Clock
    ids: Ids
    calibration: CalibrationFile | None = None
    seen: SeenFiles | None = None
    project: ProjectFiles | None = None
    opened: OpenConversations | None = None
    states: StateFiles | None = None


def assemble(
    parts: Parts,
    policy: Policy,
    *,
    project: str,
    root: Path,
    setup: Setup,
    retention_days: int = 30,
    wanted: str = NEW,
    location: str = "",
    unattended: dict[str, Decision] | None = None,
    show_project: bool = True,
) -> Engine:
    """An engine over `parts`. `project` is the slug conversations are filed under, `root` the project folder."""
    bus = Bus()

    def new_ledger() -> TokenLedger:
        """A fresh ledger for another conversation; what was learned of the model and its server stays."""
        echo = meter.ledger.echo_reasoning
        meter.ledger = TokenLedger(parts.count, meter.ledger.factor, echo_reasoning=echo)
        meter.scales = Scales(echo_reasoning=echo)
        return meter.ledger

    meter = Meter(
        TokenLedger(parts.count, echo_reasoning=policy.echo_reasoning),
        policy.compact_at,
        policy.max_output,
        policy.reserve_override,
        compact_base=policy.compact_base,
    )
    omissions = WithinQuota(parts.omissions, bus, partial(parts.log.omissions_in_views, project))
    omitter = Omitter(omissions, bus, parts.clock, retention_days, policy.omit_after_turns)
    permissions = Permissions(bus, parts.ids, unattended)
    archive = Archive(
        parts.log,
        project,
        root,
        bus,
        parts.clock,
        parts.ids,
        new_ledger,
        location=location,
        wanted=wanted,
        opened=parts.opened,
    )
    originals = Originals(omitter, parts.log, lambda: archive.session)
    recaller = ConversationRecaller(lambda: archive.session, parts.log, originals)
    runner = ToolRunner(
        parts.box,
        parts.titles,
        permissions,
        omitter,
        bus,
        parts.clock,
        parts.ids,
        omitted=originals,
        recaller=recaller,
        seen=parts.seen,
    )
    control = ModelControl(parts.hub, bus, parts.clock)
    warm: WarmResume | None = None
    if parts.states is not None:
        warm = WarmResume(policy.warm_resume, policy.warm_resume_mb, parts.states, control, parts.clock)
    summariser = _summariser(policy, parts.clock, Continuation(policy.compact_continuation, control))
    folder = str(root) if show_project else ""
    state = EngineState(
        policy=policy,
        bus=bus,
        clock=parts.clock,
        ids=parts.ids,
        control=control,
        archive=archive,
        omitter=omitter,
        originals=originals,
        desk=Desk(parts.memory, omitter, bus, folder, ProjectDesk(parts.project, bus, parts.clock, folder)),
        meter=meter,
        runner=runner,
        permissions=permissions,
        usage=UsageBook(parts.journal, parts.clock),
        cache=CacheWatch(control, bus),
        compactor=Compactor(bus, parts.clock, meter, parts.memory, omitter, summariser, policy.beside_tokens),
        calibration_file=parts.calibration,
        warm=warm,
    )
    control.swapped = state.server_swapped
    return Engine(state, setup)


def _summariser(policy: Policy, clock: Clock, continuation: Continuation) -> Summariser:
    needs = NEED_KINDS if policy.beside_tokens == 0 else NOT_BESIDE
    return Summariser(strategy_named(policy.strategy), policy.sections, needs, clock, continuation)


def policy_from(settings: Settings, *, offer_economy: bool = False) -> Policy:
    """The engine's share of the settings."""
    return Policy(
        compact_at=settings.compact_at,
        auto_compress=settings.auto_compress,
        trigger=chosen_trigger(settings.compact_trigger, keep=settings.keep_turns, slide_by=settings.slide_by),
        compact_base=settings.compact_base,
        strategy=settings.compact_strategy,
        sections=settings.summary_sections,
        beside_tokens=settings.beside_tokens,
        omit_after_turns=settings.omit_after_turns,
        max_output=settings.max_output,
        max_tool_rounds=settings.max_tool_rounds,
        retries=settings.retries,
        temperature=settings.temperature,
        window_override=settings.window,
        keep_images=settings.keep_images,
        max_request_mb=settings.max_request_mb,
        compact_continuation=settings.compact_continuation,
        prewarm=settings.prewarm,
        proj_snapshot=settings.proj_snapshot,
        warm_resume=settings.warm_resume,
        warm_resume_mb=settings.warm_resume_mb,
        offer_economy=offer_economy,
    )


def build_hub(settings: Settings, env: Mapping[str, str], *, probe: bool = True, keep_states: bool = False) -> Hub:
    """The model hub of the product. `keep_states`: its embedded engine may keep what it has computed (warm resume)."""
    return Hub(
        cache_dir=paths.cache_dir(),
        log_dir=paths.data_dir() / "logs",
        home=Path.home(),
        env=env,
        base_url=settings.base_url,
        api_key=settings.api_key,
        model=settings.model,
        window_override=settings.window,
        local_window=settings.local_window,
        silence_timeout=float(settings.request_timeout),
        probe=probe,
        keep_states=keep_states,
    )


async def build_engine(
    settings: Settings,
    *,
    cwd: Path,
    wanted: str = NEW,
    unattended: dict[str, Decision] | None = None,
    env: Mapping[str, str] | None = None,
    root: Path | None = None,
    offer_economy: bool = False,
) -> Engine:
    """The engine of the product for the project around `cwd`. `offer_economy`: see `Policy`.

    Raises `CannotStart` when the log cannot be opened or the installation is damaged.
    """
    project_root = root or paths.project_root(cwd)
    clock = SystemClock()
    database = paths.conversations_db()
    hub = build_hub(settings, env if env is not None else os.environ, keep_states=settings.warm_resume != "off")
    omissions = OmissionStore(
        paths.omissions_dir(project_root), clock.now, root=project_root, quota_mb=settings.omissions_quota_mb
    )
    seen = ReadState()
    try:
        count = await load_counter()  # before the log is open: its thread would outlive a failure
        log = await LogStore.open(database, outputs=omissions)
    except (TokenizerError, StoreError) as problem:
        raise CannotStart(str(problem)) from problem
    about = ProjectStore(project_root, cwd, paths.project_marex(project_root), paths.memory_dir(project_root))
    parts = Parts(
        hub=hub,
        log=log,
        omissions=omissions,
        memory=MemoryStore(paths.memory_dir(project_root), project_root),
        journal=UsageJournal(paths.project_marex(project_root)) if settings.persist_usage else None,
        box=default_toolbox(
            project_root,
            bash_timeout=settings.bash_timeout,
            read_state=seen,
            more=(MemoryPage(about.pages), Tracker(about.trackers, partial(local_day, clock))),
        ),
        titles=cast(Titles, titles),
        count=count,
        clock=clock,
        ids=RandomIds(),
        calibration=CalibrationStore(paths.data_dir()),
        seen=seen,
        project=about,
        opened=OpenConversations(paths.data_dir() / "open"),
        states=WarmStates(paths.cache_dir() / "slots"),
    )
    return assemble(
        parts,
        policy_from(settings, offer_economy=offer_economy),
        project=paths.project_slug(project_root),
        root=project_root,
        setup=Setup(hub, project_root, paths.config_file()),
        retention_days=settings.memory_retention_days,
        wanted=wanted,
        location=str(database),
        unattended=unattended,
    )
