"""A run's configuration: one YAML file, validated before anything is touched.

Secrets are never in the file: it names environment variables that hold them.
"""

from __future__ import annotations

import argparse
import os
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from jobs import addresses
from jobs.exit import UsageError
from jobs.places import GivenPlace, Place, place_of
from jobs.yaml_file import read_yaml
from schemas.gates import GateName
from transforms.nearest import suggestion
from transforms.reconcile.judge.earlier import Claim
from transforms.reconcile.judge.thresholds import JudgeLimits
from transforms.retention import Retention as RetentionRules

# Below the output folder of `kraft-audit check`.
TABLES_FOLDER = "tables"
FailOn = Literal["error", "warn", "never"]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
HostName = Annotated[str, AfterValidator(addresses.host)]
WebAddress = Annotated[str, AfterValidator(addresses.web_address)]
MailAddress = Annotated[str, AfterValidator(addresses.mail_address)]
# A century at most: a time that is so far from now has a date.
_CENTURY_DAYS = 36_525
Days = Annotated[float, Field(ge=1, le=_CENTURY_DAYS)]
Hours = Annotated[float, Field(gt=0, le=_CENTURY_DAYS * 24)]


class Strict(BaseModel):
    """What a person writes: an unknown key, an empty text, `.inf` and `.nan` are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_empty_text(cls, given: object) -> object:
        # As a path it would be the folder that the run happens to be in.
        for key, value in given.items() if isinstance(given, dict) else ():
            texts = value if isinstance(value, list) else [value]
            if any(isinstance(text, str) and not text.strip() for text in texts):
                raise ValueError(f"`{key}` is empty: give a value, or leave the key out")
        return given


class ZooKeeperAuth(Strict):
    """How to authenticate to ZooKeeper; secrets by the name of their environment variable."""

    scheme: Literal["digest", "sasl_digest_md5", "sasl_gssapi"]
    username: str | None = None
    password_env: EnvironmentName | None = None
    service: str = "zookeeper"

    @model_validator(mode="after")
    def _whole(self) -> ZooKeeperAuth:
        # Without one of them the walk would be anyone's, and what it may not read would look like a gap.
        missing = [name for name in ("username", "password_env") if getattr(self, name) is None]
        if self.scheme != "sasl_gssapi" and missing:
            raise ValueError(f"{self.scheme} needs {' and '.join(missing)}")
        return self


class ZooKeeperTls(Strict):
    """TLS to ZooKeeper; certificate and key switch on mutual TLS."""

    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password_env: EnvironmentName | None = None
    verify: bool = True
    verify_hostname: bool = True

    @model_validator(mode="after")
    def _whole(self) -> ZooKeeperTls:
        if (self.key_file or self.key_password_env) and not self.certificate_file:
            raise ValueError("key_file needs certificate_file")
        return self


class ZooKeeperSettings(Strict):
    """Where the ZooKeeper side comes from: exactly one of a live ensemble, a data folder or a dump."""

    connect: Annotated[str, AfterValidator(addresses.ensemble)] | None = None
    folder: GivenPlace | None = None
    log_folder: GivenPlace | None = None
    dump: GivenPlace | None = None
    auth: ZooKeeperAuth | None = None
    tls: ZooKeeperTls | None = None
    read_only: bool = True
    # None: as a run finds it right. Where both sides are read live it takes a bracket, else one walk.
    bracket: bool | None = None
    requests_per_second: Annotated[float, Field(gt=0)] | None = None
    window: Annotated[int, Field(ge=1, le=10_000)] = 500
    session_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 30.0
    # How long a walk waits for its next znode, and what a walk may be at most.
    patience_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    max_depth: Annotated[int, Field(ge=6, le=1000)] = 32
    max_znodes: Annotated[int, Field(ge=1)] = 20_000_000
    max_minutes: Annotated[float, Field(gt=0)] = 240.0

    @model_validator(mode="after")
    def _one_source(self) -> ZooKeeperSettings:
        given = [name for name in ("connect", "folder", "dump") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of connect, folder and dump (given: {', '.join(given) or 'none'})")
        if self.bracket and self.connect is None:
            raise ValueError("bracket walks a live ensemble twice; it needs connect")
        return self


class KraftSecurity(Strict):
    """Security of the connections to live controllers; secrets by the names of their environment variables."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = None
    password_env: EnvironmentName | None = None
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password_env: EnvironmentName | None = None
    verify: bool = True
    verify_hostname: bool = True

    @model_validator(mode="after")
    def _whole(self) -> KraftSecurity:
        sasl = {"mechanism": self.mechanism, "username": self.username, "password_env": self.password_env}
        if self.protocol.startswith("SASL"):
            missing = [name for name, value in sasl.items() if not value]
            if missing:
                raise ValueError(f"{self.protocol} needs {', '.join(missing)}")
        elif any(sasl.values()):
            raise ValueError(
                f"mechanism, username and password_env are for SASL_PLAINTEXT and SASL_SSL, not {self.protocol}"
            )
        tls = (self.ca_file, self.certificate_file, self.key_file, self.key_password_env)
        if not self.protocol.endswith("SSL") and any(tls):
            raise ValueError(f"ca_file, certificate_file and key_file are for SSL and SASL_SSL, not {self.protocol}")
        if (self.key_file or self.key_password_env) and not self.certificate_file:
            raise ValueError("key_file needs certificate_file")
        return self


class KraftSettings(Strict):
    """Where the KRaft side comes from: the controllers themselves, their log folders (or a parent of several), or both."""

    folders: list[str] = []
    # Live: any of the controllers' listeners; the others are found through them.
    controllers: list[Annotated[str, AfterValidator(addresses.server)]] = []
    cluster_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")] | None = None
    security: KraftSecurity = KraftSecurity()
    # Everything the controllers still serve, or their newest snapshot and what follows it.
    history: bool = True
    keep_copy: Path | None = None
    bytes_per_second: Annotated[float, Field(gt=0)] | None = None
    request_seconds: Annotated[float, Field(gt=0, le=600)] = 10.0
    patience_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    # One answer, however large it is.
    answer_seconds: Annotated[float, Field(gt=0, le=3600)] = 300.0
    # A run keeps the replayed state once this many records are new, and the next one starts from there.
    keep_state_every: Annotated[int, Field(ge=1)] = 500_000
    # Read and replay the log from its start, even if a kept state could be resumed.
    full: bool = False
    # The folders are copied again before each run: a newest record older than `report.stale_after_hours` is an error.
    current: bool = False

    @model_validator(mode="after")
    def _some_copy(self) -> KraftSettings:
        if not self.folders and not self.controllers:
            raise ValueError("give folders, controllers or both")
        if self.controllers and self.cluster_id is None:
            raise ValueError("controllers need cluster_id, so that no other cluster's log is taken for this one's")
        if not self.controllers and (self.keep_copy or self.cluster_id or self.security != KraftSecurity()):
            raise ValueError("cluster_id, security and keep_copy are for controllers, and none are given")
        return self


class SecretSettings(Strict):
    """Environment variables that hold secrets."""

    fingerprint_key_env: EnvironmentName | None = None
    password_encoder_secret_envs: list[EnvironmentName] = []


class PropertySettings(Strict):
    """Property files of the nodes, all optional: a check that needs a missing one names it."""

    controllers: list[str] = []
    brokers: list[str] = []
    broker_meta: list[str] = []
    clear_text_passwords_accepted: bool = False


class Thresholds(Strict):
    """When a number is a warning."""

    lag_seconds: Annotated[float, Field(ge=0)] = 60.0
    alive_seconds: Annotated[float, Field(gt=0)] = 5.0
    capture_skew_seconds: Annotated[float, Field(gt=0)] = 60.0
    restart_may_interrupt: bool = False


class MailSettings(Strict):
    """The morning e-mail."""

    host: HostName
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username_env: EnvironmentName | None = None
    password_env: EnvironmentName | None = None
    sender: MailAddress
    recipients: Annotated[list[MailAddress], Field(min_length=1)]
    error_recipients: list[MailAddress] = []
    send: Literal["always", "on_change", "when_red"] = "always"
    # With on_change, a persisting problem is reported again after this time.
    remind_after_hours: Hours = 24.0
    # How often a server that does not answer, or says "later", is tried.
    attempts: Annotated[int, Field(ge=1, le=10)] = 3

    @model_validator(mode="after")
    def _whole(self) -> MailSettings:
        if (self.username_env is None) != (self.password_env is None):
            raise ValueError("username_env and password_env go together")
        return self


class ReportSettings(Strict):
    """Where reports go and how many rows they list."""

    folder: GivenPlace = Path("reports")
    rows: Annotated[int, Field(ge=1, le=100_000)] = 1000
    # Where `folder` is served, for links in mails.
    url: Annotated[WebAddress, Field(pattern=r"^[^\s\"'<>]+$")] | None = None
    # The fleet page lists a cluster whose newest run is older under "No recent audit".
    stale_after_hours: Hours = 48.0
    # Retired clusters: once their newest run is old, the fleet's page leaves them out.
    retired: list[str] = []
    mail: MailSettings | None = None


class MetricsSettings(Strict):
    """Where the metrics of a run go: a folder that node_exporter reads, a push gateway, or both."""

    # The folder of node_exporter's --collector.textfile.directory.
    textfile: Path | None = None
    push_gateway: Annotated[WebAddress, Field(pattern=r"^[^\s@?#]+$")] | None = None
    job: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")] = "kraft_audit"
    username_env: EnvironmentName | None = None
    password_env: EnvironmentName | None = None

    @model_validator(mode="after")
    def _whole(self) -> MetricsSettings:
        if self.textfile is None and self.push_gateway is None:
            raise ValueError("give textfile, push_gateway or both")
        if (self.username_env is None) != (self.password_env is None):
            raise ValueError("username_env and password_env go together")
        if self.password_env is not None and not (self.push_gateway or "").startswith("https://"):
            raise ValueError("a password needs a push_gateway with https://")
        return self


class NotifySettings(Strict):
    """A chat, a pager or a program that gets one message per run. Its address is a secret, so an environment variable has it."""

    url_env: EnvironmentName
    # json: one object for a program; apprise: any service that Apprise supports, with its form of address.
    form: Literal["json", "slack", "teams", "apprise"] = "json"
    send: Literal["always", "on_change", "when_red"] = "on_change"
    # With on_change, a persisting problem is reported again after this time.
    remind_after_hours: Hours = 24.0
    # How often an address that does not answer, or says "later", is tried.
    attempts: Annotated[int, Field(ge=1, le=10)] = 3


class MaintainSettings(Strict):
    """How long rows stay, and when a run does the work of `kraft-audit maintain`."""

    # Bronze and silver: the sources as read, and the state of both sides.
    details_days: Days = 30.0
    # Gold: single changes of partitions; older ones are summed up by day.
    isr_days: Days = 90.0
    # Gold: the results, and those sums.
    judged_days: Days = 730.0
    # Rows of runs that never finished.
    orphans_days: Days = 1.0
    # How long files stay that no table needs any more: for runs in progress, and for queries about runs whose state was removed.
    vacuum_hours: Annotated[Hours, Field(ge=24)] = 168.0
    # A run maintains if the last maintenance was this long ago, or this many runs of the cluster have begun since.
    every_hours: Hours = 24.0
    after_runs: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _in_order(self) -> MaintainSettings:
        if self.judged_days < self.details_days:
            raise ValueError(
                "judged_days is below details_days: details would be kept longer than the results judged from them"
            )
        return self


class SparkSettings(Strict):
    """The Spark session when the run has to start one itself."""

    # auto: small or local, by the size of the files that are read.
    profile: Literal["auto", "small", "local", "cluster"] = "auto"
    cores: Annotated[int, Field(ge=1)] | None = None
    driver_memory: Annotated[str, Field(pattern=r"^[1-9][0-9]*[mg]$")] | None = None


def _no_folder(name: str) -> str:
    # Reports and copies go to folders of that name: these are the folder itself and the one above it.
    if name in (".", ".."):
        raise ValueError("`.` and `..` are names of folders, not of a cluster")
    return name


def _time_with_zone(given: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        # pydantic takes a number, such as a date without its hyphens, for seconds since 1970.
        if not _is_number(given):
            return validate(given)
    except ValidationError:
        pass
    raise ValueError("give `data`, or a time with its zone, such as 2026-11-24T12:00:00Z")


def _is_number(given: object) -> bool:
    try:
        float(str(given))
    except ValueError:
        return False
    return True


def _all_or_runs(given: object, validate: ValidatorFunctionWrapHandler) -> object:
    try:
        return validate(given)
    except ValidationError:
        raise ValueError("give `until-finalised`, or a list of run ids") from None


class Settings(Strict):
    """All settings of a run."""

    cluster: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), AfterValidator(_no_folder)]
    warehouse: str
    catalog: bool = False
    # On a storage that lets two runs overwrite each other's commits (s3a): never more than one at a time writes there.
    warehouse_single_driver: bool = False
    zookeeper: ZooKeeperSettings | None = None
    kraft: KraftSettings | None = None
    # When ZooKeeper and the log were read, if not now: `data`, or a time with its zone.
    as_of: Annotated[Literal["data"] | AwareDatetime | None, WrapValidator(_time_with_zone)] = None
    kafka_version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")] | None = None
    secrets: SecretSettings = SecretSettings()
    properties: PropertySettings = PropertySettings()
    thresholds: Thresholds = Thresholds()
    report: ReportSettings = ReportSettings()
    metrics: MetricsSettings | None = None
    notify: list[NotifySettings] = []
    spark: SparkSettings = SparkSettings()
    suppressions: Path | None = None
    # Files of expectations (Great Expectations' JSON), or patterns of their names.
    expectations: list[str] = []
    # Silver rows are kept of this many newest runs at least.
    keep_state_of_runs: Annotated[int, Field(ge=2, le=30)] = 10
    # None: by the command alone, with the defaults.
    maintain: MaintainSettings | None = None
    # Evidence that no maintenance removes: all of the cluster's until the migration is finalised, or that of these runs.
    hold: Annotated[Literal["until-finalised"] | list[str], WrapValidator(_all_or_runs)] = []
    fail_on: FailOn = "error"
    # The gate that must be open, and whether it may be one that could not be judged.
    gate: GateName | None = None
    allow_unknown: bool = False

    # Where it was read from, for messages.
    _where: str = PrivateAttr("configuration")
    # An audit of files, once (`kraft-audit check`): it is compared with no earlier run.
    _one_off: bool = PrivateAttr(False)

    @model_validator(mode="after")
    def _told_once(self) -> Settings:
        names = [each.url_env for each in self.notify]
        if len(set(names)) < len(names):
            raise ValueError("notify: name each url_env once")
        return self

    @model_validator(mode="after")
    def _some_source(self) -> Settings:
        if self.zookeeper is None and self.kraft is None:
            raise ValueError("nothing to audit: give zookeeper, kraft or both")
        return self

    @property
    def bracketed(self) -> bool:
        """True when ZooKeeper is walked before and after the log is read: asked for, or both sides are live (S§5.5)."""
        if self.zookeeper is None or self.zookeeper.connect is None:
            return False
        live = self.kraft is not None and bool(self.kraft.controllers)
        return live if self.zookeeper.bracket is None else self.zookeeper.bracket


def add_files_argument(where: argparse._ActionsContainer, text: str, **more: Any) -> None:
    """Declare the option `--conf` of a command over several clusters; `text` is its help, `more` what else argparse takes."""
    where.add_argument("--conf", type=Path, nargs="+", action="extend", metavar="FILE", help=text, **more)


def load_settings(path: Path) -> Settings:
    """Read and validate a configuration file. Raises UsageError with one line that names the file and the key."""
    content = read_yaml(path, "configuration")
    if not isinstance(content, dict):
        raise UsageError(f"configuration {path} must be a mapping with at least `cluster` and `warehouse`")
    return validated(content, f"configuration {path}")


def validated(content: dict[str, object], where: str, *, one_off: bool = False) -> Settings:
    """Validate a configuration; `check_files` checks that its files exist.

    `one_off` marks an audit of files that belongs to no series of runs. Raises UsageError for the first thing that is wrong,
    naming `where`.
    """
    try:
        settings = Settings.model_validate(content)
    except ValidationError as error:
        raise UsageError(f"{where}: {first_problem(error, Settings)}") from None
    settings._where, settings._one_off = where, one_off
    return settings


def limits_of(settings: Settings) -> JudgeLimits:
    """The thresholds of a configuration as the judgement takes them."""
    given = settings.thresholds
    return JudgeLimits(given.capture_skew_seconds, given.alive_seconds, given.lag_seconds, given.restart_may_interrupt)


def retention_of(settings: Settings) -> RetentionRules:
    """How long the cluster's rows stay, as retention takes it."""
    given, hold = settings.maintain or MaintainSettings(), settings.hold
    held = (hold,) if isinstance(hold, str) else tuple(hold)
    return RetentionRules(given.details_days, given.isr_days, given.judged_days, given.orphans_days, held)


def claim_of(settings: Settings, begun: datetime, read_by: datetime) -> Claim:
    """How new the sources of a run claim to be that began and had read them at these moments."""
    kraft = settings.kraft
    return Claim(
        now=round(begun.timestamp() * 1000),
        stale_after=settings.report.stale_after_hours * 3600,
        one_off=settings._one_off,
        dated=settings.as_of is not None,
        current=kraft is not None and (kraft.current or bool(kraft.controllers)),
        read_by=round(read_by.timestamp() * 1000),
    )


def first_problem(error: ValidationError, model: type[BaseModel]) -> str:
    """The first thing that is wrong with what a person wrote for `model`, in one line, never showing the input."""
    # pydantic's own text would show the input, which may be a secret put in the wrong place.
    problem = sorted(error.errors(include_input=False), key=lambda p: p["type"] != "extra_forbidden")[0]
    place = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        known = _known_keys(model, problem["loc"][:-1])
        return f"unknown key `{place}`; {suggestion(str(problem['loc'][-1]), known)}"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "model_type":
        message = "keys and values are expected"
    if problem["type"] == "string_type":
        message = "a text is expected; what looks like a number or a date needs quotes"
    return f"`{place}`: {message}" if place else message


def _known_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        if isinstance(part, int) or part not in model.model_fields:
            continue
        annotation = model.model_fields[part].annotation
        candidates = [
            c for c in (annotation, *get_args(annotation)) if isinstance(c, type) and issubclass(c, BaseModel)
        ]
        if candidates:
            model = candidates[0]
    return [field.alias or name for name, field in model.model_fields.items()]


def check_files(settings: Settings) -> None:
    """Look whether the files of this machine are there that a configuration names. Raises UsageError for the first that is not.

    Whether remote ones can be reached is found out by whoever reads them.
    """
    where, zookeeper = settings._where, settings.zookeeper
    if zookeeper is not None:
        _readable_file(zookeeper.dump, f"{where}: `zookeeper.dump`")
        _readable_folder(zookeeper.folder, f"{where}: `zookeeper.folder`")
        _readable_folder(zookeeper.log_folder, f"{where}: `zookeeper.log_folder`")
    _readable_file(settings.suppressions, f"{where}: `suppressions`")
    _no_file(settings.report.folder, f"{where}: `report.folder`")
    if settings.kraft is not None:
        security = settings.kraft.security
        for key in ("ca_file", "certificate_file", "key_file"):
            _readable_file(getattr(security, key), f"{where}: `kraft.security.{key}`")
        if settings.kraft.keep_copy is not None:
            _no_file(settings.kraft.keep_copy, f"{where}: `kraft.keep_copy`")
    for folder in settings.kraft.folders if settings.kraft else []:
        _readable_folder(place_of(folder), f"{where}: `kraft.folders`")
    for key in ("controllers", "brokers", "broker_meta"):
        for file in getattr(settings.properties, key):
            _readable_file(place_of(file), f"{where}: `properties.{key}`")


def zookeeper_risk(source: ZooKeeperSettings | None) -> str:
    """How whoever listens on the way to ZooKeeper gets at the password; empty when there is none to get, or TLS hides it."""
    if source is None or source.connect is None or source.auth is None or source.auth.scheme == "sasl_gssapi":
        return ""
    if source.tls is not None:
        return "" if source.tls.verify else f"zookeeper.tls: {_UNVERIFIED}"
    if source.auth.scheme == "digest":
        return f"zookeeper.auth: scheme digest without tls {_CLEAR}; configure `zookeeper.tls`"
    return f"zookeeper.auth: scheme sasl_digest_md5 without tls {_GUESSED}; configure `zookeeper.tls`"


def controllers_risk(kraft: KraftSettings | None) -> str:
    """How whoever listens on the way to the controllers gets at the password; empty when they don't."""
    if kraft is None or not kraft.controllers or not kraft.security.protocol.startswith("SASL"):
        return ""
    security = kraft.security
    if security.protocol == "SASL_SSL":
        return "" if security.verify else f"kraft.security: {_UNVERIFIED}"
    how = _CLEAR if security.mechanism == "PLAIN" else _GUESSED
    return f"kraft.security: {security.mechanism} over SASL_PLAINTEXT {how}; use SASL_SSL"


_CLEAR = "sends the password in clear text: anyone who can listen on the network can read it"
_GUESSED = "lets anyone who can listen on the network guess the password"
_UNVERIFIED = "`verify: false` gives the password to any server that answers; name the CA in `ca_file` instead"


def _readable_file(path: Place | None, what: str) -> None:
    if not isinstance(path, Path):
        return
    if not path.is_file():
        raise UsageError(f"{what}: there is no file {path}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{what}: {path} is not readable by this user")


def _readable_folder(path: Place | None, what: str) -> None:
    if not isinstance(path, Path):
        return
    if not path.is_dir():
        raise UsageError(f"{what}: there is no folder {path}")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"{what}: {path} is not readable by this user")


def _no_file(path: Place, what: str) -> None:
    """Refuse a folder that can't be made because a file is in its way, before hours of work end there."""
    if not isinstance(path, Path):
        return
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise UsageError(f"{what}: {there} is a file; name a folder")


def secret_from_environment(name: str, what: str) -> str:
    """The secret in an environment variable. Raises UsageError naming the variable, never its value."""
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"{what}: the environment variable {name} is not set")
    return value


Section = TypeVar("Section", bound=Strict)


def overridden(settings: Section, **values: object) -> Section:
    """The settings, or a section of them, with those values replaced that are not None (command-line options)."""
    return settings.model_copy(update={name: value for name, value in values.items() if value is not None})
