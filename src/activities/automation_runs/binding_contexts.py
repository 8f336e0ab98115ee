"""The context that the bindings of a node read, by the scope it runs in (decisions C8, D3)."""

from collections.abc import Collection

from activities.automation_runs.open_loops import OpenLoop, read_config
from activities.automation_runs.resume_urls import run_variable
from activities.automation_runs.runs import OpenRun
from models.automation.automation_runs.loops import read_loop
from models.automation.automation_runs.node_writes import NodeKey
from models.automation.automations.rules.language.bindings import BindingContext
from models.automation.automations.rules.language.visible_scopes import index_of, loop_of
from models.automation.automations.rules.planner.protocol import NodeRef
from runtime.database import Database


async def binding_context(
    database: Database, run: OpenRun, reads: Collection[str] | None, scope_key: str
) -> BindingContext:
    """The trigger, the outputs of the nodes in `reads` (None: of all), the item, the run.

    The index is the innermost loop's; the item that of the innermost loop which has items.
    """
    header = run.header
    scope = header.options.get("scope") or {}
    item, index = scope.get("item"), scope.get("index")
    if scope_key:
        item, index = await _item(database, run, scope_key), index_of(scope_key)
    return BindingContext(
        trigger=scope.get("trigger", header.trigger_payload),
        nodes=await run.outputs(database, reads, scope_key),
        run=run_variable(run, scope_key),
        item=item,
        index=index,
        vars={**run.graph.variables, **(scope.get("variables") or {})},
    )


async def _item(database: Database, run: OpenRun, scope_key: str) -> object:
    scope = run.item_scope(scope_key)
    if scope is None:
        return None
    items = (await open_loop(database, run, loop_of(scope))).items or []
    return items[index_of(scope)]


async def open_loop(database: Database, run: OpenRun, ref: NodeRef) -> OpenLoop:
    """A loop that was opened, read from memory or from its row."""
    loop = run.known_loop(ref)
    if loop is None:
        kind = run.graph.nodes[ref.node_id].kind
        key = NodeKey(run.header.workspace_id, run.header.run_id, ref.node_id, ref.scope_key, kind)
        async with database.statement() as work:
            row = await read_loop(work, key)
        assert row is not None, "a loop is opened before its iterations run"
        loop = OpenLoop(read_config(kind, row.input), run.chosen(ref))
        run.keep_loop(ref, loop)
    return loop
