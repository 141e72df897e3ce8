"""An authority that another one follows, or is to follow, as it was observed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from herdkeeper.certificates.authority import Authority
from herdkeeper.certificates.issue import KeyPair


@dataclass(frozen=True)
class Begin:
    """A roll to this authority is to begin."""

    successor: KeyPair


@dataclass(frozen=True)
class Replace:
    """In the first step of a roll: this one must follow in place of the one that every server is about to trust."""

    successor: KeyPair


@dataclass(frozen=True)
class GiveUp:
    """In the first step of a roll: no authority is to follow any more."""


@dataclass(frozen=True)
class Expired:
    """The one that signs has expired, in any step. The `successor` takes its place at once; None: there is none yet."""

    successor: KeyPair | None


@dataclass(frozen=True)
class Outdated:
    """The one that signs has expired and is from an old backup: members hold a later one's valid certificates, in `members_secret`."""

    members_secret: str


AuthorityChange = Begin | Replace | GiveUp | Expired | Outdated


@dataclass(frozen=True)
class AuthorityRoll:
    """An authority that another one follows, or should follow, as in the Secret `secret` of this version at `now`.

    `change` is what happens to it besides the steps of a roll; None: nothing. `behind` is which Secret or pod lacks its present state, or
    what else blocks the next step; None: nothing. `since` is the time since which nothing is behind: that in the Secret, or when the last
    older pod became Ready; None: not noted yet.
    """

    secret: str
    resource_version: str
    authority: Authority
    now: datetime
    change: AuthorityChange | None = None
    behind: str | None = None
    since: datetime | None = None

    @property
    def signs_next(self) -> KeyPair:
        """The authority that takes over, or else the one that goes on signing."""
        match self.change:
            case Begin(successor) | Replace(successor):
                return successor
            case GiveUp() | Outdated():
                return self.authority.signing
            case Expired(successor):
                return successor or self.authority.signing
            case None:
                return self.authority.following or self.authority.signing
