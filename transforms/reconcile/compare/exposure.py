"""The known defects of a Kafka release (S§12.2)."""

from __future__ import annotations

from schemas.defects import DEFECTS, LAST_PATCH, REMOVED_IN, KnownDefect

Release = tuple[int, int, int]


def affecting(version: str) -> list[tuple[KnownDefect, str]]:
    """Defects of a release such as `3.9.1`, each with what repairs it, in the catalogue's order.

    Of a release named without its patch (`3.9`) every patch counts: one that is affected is enough.
    """
    return [(defect, releases) for defect in DEFECTS if (releases := _affected(defect, version)) is not None]


def has(jira: str, version: str | None) -> bool | None:
    """Whether a release has a defect of the catalogue; None if its patch, or the release, is unknown and decides it."""
    if version is None:
        return None
    defect = next(each for each in DEFECTS if each.jira == jira)
    found = {_has(defect, patch) for patch in _candidates(version)}
    return found.pop() if len(found) == 1 else None


def _affected(defect: KnownDefect, version: str) -> str | None:
    """How a release is affected, in words; None when it is not."""
    candidates = _candidates(version)
    affected = [patch for patch in candidates if _has(defect, patch)]
    if not affected:
        return None
    repair = f"repaired in {', '.join(defect.fixed)}" if defect.fixed else "no release repairs it"
    if len(candidates) == 1:
        return repair
    if len(affected) == len(candidates):
        return f"every release of {version} has it; {repair}"
    names = ", ".join(".".join(map(str, patch)) for patch in affected)
    return f"the patch release of {version} is unknown, {names} has the defect; {repair}"


def _candidates(version: str) -> list[Release]:
    if version.count(".") >= 2:
        return [_parsed(version)]
    return [_parsed(f"{version}.{patch}") for patch in range(LAST_PATCH.get(version, 0) + 1)]


def _parsed(version: str) -> Release:
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return major, minor, patch


def _has(defect: KnownDefect, release: Release) -> bool:
    if not _parsed(defect.first) <= release < _parsed(REMOVED_IN):
        return False
    repairs = [_parsed(version) for version in defect.fixed]
    here = [repair for repair in repairs if repair[:2] == release[:2]]
    if here:
        return release < here[0]
    return not repairs or release < max(repairs)
