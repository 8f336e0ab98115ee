"""Deletions that are refused while they break something, unless `force` says otherwise.

A router declares `deletes=SubjectKind.ACTION` beside a DELETE; `Router.add` gives the endpoint the
parameter `force` and the check of `models.workspace.impact.deletions`.
"""

import inspect
from dataclasses import dataclass, replace
from inspect import Parameter

from api.kernel.operation import Endpoint
from api.kernel.request import ApiRequest, Flag
from models.core.references.rules import SubjectKind
from models.workspace.impact.deletions import unless_in_use
from models.workspace.impact.queries import ImpactQuestion

FORCE = "force"


@dataclass(frozen=True, slots=True)
class Deletes:
    """The kind of the thing that an operation deletes; the last parameter of its path names it.

    An item is the one that the resource of the operation has.
    """

    kind: SubjectKind
    forced: bool = False
    """The value of `force` where the client sends none."""

    def sentence(self) -> str:
        """The rule in words, for the description of the operation."""
        unless = "With `force=false` it" if self.forced else "Without `force=true` it"
        return f"{unless} is refused with `in_use` while it breaks a place that names the thing."

    def question(self, request: ApiRequest, parameter: str) -> ImpactQuestion:
        """The question for the impact of the deletion."""
        if self.kind is SubjectKind.SECRET:
            return ImpactQuestion.model_construct(
                kind=self.kind, key=request.path_params[parameter]
            )
        id_ = request.ids[parameter]
        if self.kind is SubjectKind.ITEM and request.placement is not None:
            id_ = request.placement.item_id or id_
        return ImpactQuestion.model_construct(kind=self.kind, id=id_)


def guarded(endpoint: Endpoint, deletes: Deletes, parameter: str) -> Endpoint:
    """The endpoint with `force`: without it a deletion that breaks something is refused."""
    signature = inspect.signature(endpoint, eval_str=True)

    async def guarded_endpoint(
        request: ApiRequest, *, force: bool = deletes.forced, **given: object
    ) -> object:
        if force:
            return await endpoint(request=request, **given)
        # A proposal is tried with more scopes than its author has to read with.
        scopes = request.principal.usable_scopes(request.actor.role)
        reader = replace(request.actor, scopes=scopes)
        question = deletes.question(request, parameter)
        async with unless_in_use(request.work, reader, question):
            return await endpoint(request=request, **given)

    guarded_endpoint.__name__, guarded_endpoint.__module__ = endpoint.__name__, endpoint.__module__
    guarded_endpoint.__doc__ = f"{inspect.cleandoc(endpoint.__doc__ or '')}\n\n{deletes.sentence()}"
    force = Parameter(FORCE, Parameter.KEYWORD_ONLY, default=deletes.forced, annotation=Flag)
    guarded_endpoint.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), force]
    )
    return guarded_endpoint
