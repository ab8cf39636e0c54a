"""Counting decisions."""

from __future__ import annotations

from fuseline.ir.fuel import Decision, Fuel


def test_of_each_kind_there_is_as_much_as_was_given():
    fuel = Fuel({"fusion": 2})
    for rule in ("a", "b", "c"):
        if fuel.left("fusion"):
            fuel.spend("fusion", rule, ("x.1",), ("node",))
    fuel.spend("pass", "cse")
    assert not fuel.left("fusion") and fuel.left("pass") and fuel.left("kernel")
    assert [one.what for one in fuel.spent] == ["a", "b", "cse"]
    assert fuel.spent[1] == Decision("fusion", 1, "b", ("x.1",), ("node",))
    assert (fuel.count("fusion"), fuel.count("pass"), fuel.count("kernel")) == (2, 1, 0)


def test_of_nothing_there_is_nothing():
    assert not Fuel({"kernel": 0}).left("kernel")
