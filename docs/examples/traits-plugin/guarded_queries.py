"""Requests that keep off the GPU hosts, unless the flavor wants a GPU."""

import dataclasses

from steelyard.traits import CandidatesRequest

GPU = "CUSTOM_MASSIVE_GPU"


class GuardedRequest:
    @classmethod
    def from_flavor(cls, flavor, image=None):
        request = CandidatesRequest.from_flavor(flavor, image)
        group = request.groups.get("")
        if group is None or GPU in group.traits.required:
            return request
        guarded = dataclasses.replace(group, traits=group.traits.forbidding(GPU))
        return dataclasses.replace(request, groups={**request.groups, "": guarded})
