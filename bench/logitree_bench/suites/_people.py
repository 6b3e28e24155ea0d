"""People for the quality of whole responses: sentences, and what is true of them."""

from __future__ import annotations

from itertools import product
from typing import Any

PERSONS: tuple[tuple[str, int, str], ...] = (
    ("Anna Berg", 31, "Oslo"),
    ("Tom Miller", 54, "Boston"),
    ("Maria Rossi", 63, "Rome"),
    ("Jonas Weber", 19, "Vienna"),
    ("Olga Petrova", 45, "Paris"),
    ("Li Wei", 27, "Berlin"),
)
TEMPLATES = (
    "{name} is {age} years old, lives in {city} and is {not_}a member.",
    "{name}, {age}, of {city}. {Not_}a member.",
)


def people() -> list[tuple[str, dict[str, Any]]]:
    """Each sentence with the fields that are true."""
    made = []
    for (name, age, city), template, member in product(PERSONS, TEMPLATES, (True, False)):
        negated = "" if member else "not "
        text = template.format(name=name, age=age, city=city, not_=negated, Not_="" if member else "Not ")
        made.append(
            (text.replace(". a member", ". A member"), {"name": name, "age": age, "city": city, "member": member})
        )
    return made
