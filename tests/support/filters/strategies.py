"""Hypothesis strategies for expressions, extra specs and metadata, from a small vocabulary."""

from hypothesis import strategies as st

words = st.sampled_from(
    ["a", "b", "ab", "abc", "nvme", "sata", "4", "8", "8.0", "1e2", "-1", "many"]
)
numbers = st.sampled_from(["4", "8", "8.0", "1e2", "-1", "0", "-0", "3.5", "1_0"])
numeric_operators = st.sampled_from(["=", "==", "!=", ">=", "<="])
textual_operators = st.sampled_from(["s==", "s!=", "s<", "s<=", "s>", "s>="])

operations = st.one_of(
    st.builds("{} {}".format, numeric_operators, numbers),
    st.builds("{} {}".format, textual_operators, words),
    st.builds("<in> {}".format, words),
    st.builds(lambda found: f"<all-in> {' '.join(found)}", st.lists(words, min_size=1, max_size=3)),
)
sentinels = st.sampled_from(["*", "~"])
alternatives = st.one_of(words, sentinels, operations)
junctions = st.builds(
    lambda parts: "".join(f"<or> {part} " for part in parts).strip(),
    st.lists(alternatives, min_size=1, max_size=4),
)
well_formed = st.one_of(words, st.sampled_from(["*", "~", "!"]), operations, junctions)

_scraps = st.sampled_from(
    [
        "<or>",
        "!",
        "~",
        "*",
        ">=",
        "=",
        "==",
        "s==",
        "<in>",
        "<all-in>",
        "a",
        "4",
        "many",
        "inf",
        "nan",
        ",",
        ">=4",
        "",
        " ",
        "\t",
        "\u2003",
        "é",
    ]
)
scribble = st.one_of(
    well_formed,
    st.builds(" ".join, st.lists(_scraps, max_size=6)),
    st.builds("".join, st.lists(_scraps, max_size=6)),
    st.text(max_size=12),
)

plain_keys = ["ssd", "cpu", "zone"]
keys = st.sampled_from(
    [
        *plain_keys,
        *(f"aggregate_instance_extra_specs:{key}" for key in plain_keys),
        "hw:cpu_policy",
        "aggregate_instance_extra_specs:hw:cpu_policy",
        "availability_zone",
    ]
)
flags = st.sampled_from(["true", "True", " yes ", "1", "false", "no", "perhaps", ""])


def mappings(values: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    return st.dictionaries(keys, values, max_size=4)


def comma_lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(", ".join, st.lists(values, min_size=1, max_size=3))


def metadata(values: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Return a strategy for metadata of an aggregate, forced or not."""
    flagged = st.builds(
        lambda said, flag: {**said, "force_metadata_check": flag}, mappings(values), flags
    )
    return st.one_of(mappings(values), flagged)
