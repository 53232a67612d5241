"""The type of columns with text."""

import sqlalchemy as sa


class Text(sa.TypeDecorator[str]):
    """Text that every database compares code point by code point.

    Most collations of MySQL, even binary ones, ignore spaces at the end.
    """

    impl = sa.String
    cache_ok = True

    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[str]:
        if dialect.name not in ("mysql", "mariadb"):
            return sa.String(self.length)
        # A mysql:// URL may lead to a MariaDB server.
        is_mariadb = getattr(dialect, "is_mariadb", False)
        return sa.String(
            self.length, collation="utf8mb4_nopad_bin" if is_mariadb else "utf8mb4_0900_bin"
        )
