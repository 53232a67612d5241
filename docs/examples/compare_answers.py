"""Compare the local answer to a request with that of the live Placement.

Arguments: the name of a cloud in clouds.yaml, a provider file, and a query string.
"""

import sys

from steelyard.clients import Placement, ask
from steelyard.cloud import load_providers
from steelyard.traits import Candidate, CandidatesRequest


def differences(placement: Placement, file: str, query: str) -> list[str]:
    """Return a line for each candidate that only one of the two finds."""
    request = CandidatesRequest.parse(query)
    trees = load_providers(file)
    answer = ask(placement, request)
    live = {Candidate.from_json(each) for each in answer["allocation_requests"]}
    local = set(request.candidates(trees))
    return [
        *(f"only live: {each.as_json()}" for each in live - local),
        *(f"only local: {each.as_json()}" for each in local - live),
    ]


if __name__ == "__main__":
    import openstack

    cloud, file, query = sys.argv[1:]
    found = differences(Placement(openstack.connect(cloud=cloud).placement), file, query)
    sys.stdout.write("\n".join(found) or "both answers are equal\n")
