"""The page in Chromium, used with the keyboard."""

from playwright.sync_api import expect

from support.page.shown_decisions import WIDE, Open, count, hosts, press, tab_to


def test_tab_visits_controls_in_order(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    press(watched, "Tab")
    assert watched.focused == "Skip to the hosts"
    assert watched.page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    stops = []
    for _ in range(38):
        press(watched, "Tab")
        stops.append(watched.focused)
    assert stops == [
        # Causes, the most frequent first
        "not enough RAM: flavor wants 16 GiB",
        "key 'gpu': forced aggregate 'gpu' wants 'a100', flavor does not have the key",
        "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'rack-c' offers 'sata'",
        "not enough vCPUs: flavor wants 8",
        "the host is out of service",
        "forbidden trait CUSTOM_TO_BE_SERVICED is present",
        "",  # a cell of the map
        "find-group",
        *("room-north", "room-south", "rack-a", "rack-b", "rack-c", "rack-d", "draining", "gpu"),
        *("room: north", "rack: a", "rack: b", "room: south", "rack: c", "rack: d"),
        "search",
        *("Host", "Aggregates", "Verdict", "Weight"),
        *("InServiceFilter", "CapacityFilter", "TraitsFilter", "AggregateInstanceTypeFilter"),
        *("ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"),
        *("b1", "a2", "a1", "b3", "b2"),
    ]


def test_focused_element_has_outline(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    for _ in range(40):
        press(watched, "Tab")
        style = watched.page.evaluate(
            "(({outlineStyle, outlineWidth}) => [outlineStyle, outlineWidth])"
            "(getComputedStyle(document.activeElement))"
        )
        assert style == ["solid", "2px"], watched.focused


def test_skip_link_leads_to_search(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    press(watched, "Tab", "Enter", "Tab")
    assert watched.focused == "search"
    watched.page.keyboard.type("rack-c")
    assert hosts(watched) == ["c3", "c2", "c1"]
    assert count(watched) == "3 of 12 hosts"
    press(watched, "Escape")
    assert count(watched) == "12 hosts"
    assert watched.focused == "search"
    # Other browsers do not clear the field themselves, so test the handler of the page.
    watched.page.fill("#search", "rack-c")
    watched.page.dispatch_event("#search", "keydown", {"key": "Escape"})
    assert count(watched) == "12 hosts"


def test_enter_and_space_toggle_reasons(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "c3")
    press(watched, "Enter")
    button = watched.page.locator("button.host", has_text="c3")
    assert button.get_attribute("aria-expanded") == "true"
    detail = watched.page.locator("tr.detail")
    expect(detail.locator("dd", has_text="…")).to_have_count(0)  # the servers are decompressed
    assert detail.inner_text().split("\n") == [
        "CapacityFilter",
        "RAM: flavor wants 16 GiB, the host has 2 of 128 GiB left",
        "AggregateInstanceTypeFilter (would also reject)",
        "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'rack-c' offers 'sata'",
        *("Free", "56 of 256 vCPUs", "2 of 128 GiB of RAM", "8000 of 8000 GiB of disk"),
        *("Servers", "none", "Traits", "none"),
        "Groups",
        "room-south: room=south",
        "rack-c: rack=c ssd=sata",
        "room: south",
        "rack: c",
    ]
    assert watched.focused == "c3"
    for key, unfolded in {"Space": 0, "Enter": 1}.items():
        press(watched, key)
        assert detail.count() == unfolded
    for key, unfolded in {"Enter": 0, "Space": 1}.items():
        press(watched, key)
        assert detail.count() == unfolded
    press(watched, "Space")
    assert detail.count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def test_enter_shows_weights(opened: Open, decision: str) -> None:
    watched = opened(decision)
    tab_to(watched, "b3")
    press(watched, "Enter")
    assert watched.page.locator("tr.detail").inner_text().split("\n")[:5] == [
        "Weight",
        "RAMWeigher: 90112, normalised 0.7857, times -1 is -0.7857",
        "CPUWeigher: 108, normalised 0.9",
        "DiskWeigher: 2048000, normalised 1",
        "ServerGroupSoftAntiAffinityWeigher: 0, normalised 1, times 1.5 is 1.5",
    ]


def test_shown_reasons_survive_search(opened: Open, decision: str) -> None:
    watched = opened(decision)
    tab_to(watched, "c3")
    press(watched, "Enter")
    watched.page.fill("#search", "b1")
    assert watched.page.locator("tr.detail").count() == 0
    watched.page.fill("#search", "c3")
    assert watched.page.locator("tr.detail").count() == 1


def test_enter_and_space_sort_columns(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    head = watched.page.locator("#matrix thead th")
    everything = hosts(watched)
    tab_to(watched, "Host")
    press(watched, "Enter")
    assert hosts(watched) == sorted(everything)
    assert head.nth(0).get_attribute("aria-sort") == "ascending"
    assert count(watched) == "12 hosts, sorted by Host, ascending"
    press(watched, "Space")
    assert hosts(watched) == sorted(everything, reverse=True)
    assert head.nth(0).get_attribute("aria-sort") == "descending"
    assert watched.focused == "Host"
    tab_to(watched, "Weight")
    press(watched, "Enter")
    assert hosts(watched)[:5] == ["b1", "a2", "a1", "b3", "b2"]
    assert head.nth(0).get_attribute("aria-sort") is None
    assert head.nth(3).get_attribute("aria-sort") == "descending"
    tab_to(watched, "CapacityFilter")
    press(watched, "Enter")
    # The hosts that it rejected come first, by the numbers of the reasons.
    assert hosts(watched)[:3] == ["c3", "a3", "d2"]


def test_pressed_group_shows_only_its_hosts(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "rack-c")
    press(watched, "Enter")
    assert watched.focused == "rack-c"
    assert hosts(watched) == ["c3", "c2", "c1"]
    assert count(watched) == "3 of 12 hosts"
    pressed = watched.page.locator("[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["rack-c"]
    # The search also applies within the group.
    watched.page.fill("#search", "serviced")
    assert hosts(watched) == ["c2"]
    watched.page.fill("#search", "")
    # Another group replaces it, and the button leaves it.
    tab_to(watched, "Only rack-c ✕")
    press(watched, "Shift+Tab", "Shift+Tab")
    assert watched.focused == "rack: d"
    press(watched, "Enter")
    assert hosts(watched) == ["d2", "d1"]
    assert pressed.all_inner_texts() == ["rack: d"]
    tab_to(watched, "Only rack: d ✕")
    press(watched, "Enter")
    assert watched.focused == "search"
    assert count(watched) == "12 hosts"
    assert pressed.count() == 0


def test_pressed_cause_toggles_its_hosts(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "not enough RAM: flavor wants 16 GiB")
    press(watched, "Enter")
    assert hosts(watched) == ["a3", "c3"]
    press(watched, "Enter")
    assert count(watched) == "12 hosts"
