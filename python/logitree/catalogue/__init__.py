"""Catalogues of items: built from codes, texts and tables, opened from index files, changed while they are served."""

from __future__ import annotations

from .._core import ItemWalk
from ._catalogue import Catalogue, CatalogueBuilder, CatalogueConstraint
from ._tables import ItemRows, table_items

__all__ = ["Catalogue", "CatalogueBuilder", "CatalogueConstraint", "ItemRows", "ItemWalk", "table_items"]
