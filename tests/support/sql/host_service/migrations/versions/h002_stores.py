"""The tables of the stores and a column of the service."""

import sqlalchemy as sa
from alembic import op

from steelyard.consumers import ConsumerStore
from steelyard.tags import TagStore

revision = "h002"
down_revision = "h001"


def upgrade() -> None:
    ConsumerStore(op.get_bind()).upgrade()
    TagStore(op.get_bind()).upgrade()
    op.add_column("accounts", sa.Column("quota", sa.Integer))


def downgrade() -> None:
    op.drop_column("accounts", "quota")
    TagStore(op.get_bind()).downgrade("base")
    ConsumerStore(op.get_bind()).downgrade("base")
