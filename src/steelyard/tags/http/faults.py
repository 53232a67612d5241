"""Reasons in errors of the HTTP API, as the service writes them and the client reads them."""

import enum


class FaultReason(enum.StrEnum):
    """The reason of an error with status 503, or 404, for programs."""

    ADDITION_FAILED = "additionFailed"
    """The tag is missing because the backend could not add it; the only reason of 404."""

    BACKEND_UNREACHABLE = "backendUnreachable"
    """The backend received no change."""

    OUTCOME_UNKNOWN = "outcomeUnknown"
    """The backend may still apply the request, or a part of it."""

    TRANSACTION_ABORTED = "transactionAborted"
    """The request may still be applied: a job may have been submitted before the transaction."""

    UPGRADE_NEEDED = "upgradeNeeded"
    """The tables are missing or outdated; an operator upgrades them."""

    DATABASE_UNREACHABLE = "databaseUnreachable"
    """The request may still be applied: the database may have failed after a job was submitted."""
