"""SQL nodes start when a ledger can be opened, with credentials that are made once."""

from __future__ import annotations

import base64
import datetime
import re
from dataclasses import replace

import pytest
from situations import ENSEMBLE, bookkeeper_serving, live, objects, pods, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api.herddb_cluster import Tls, UserSecret
from herdkeeper.api.resource import Condition, SecretReference
from herdkeeper.bookkeeper.state.racks import placement_of
from herdkeeper.certificates.access import herd_access
from herdkeeper.codecs.herddb.users import SqlUser, decode_users, encode_users
from herdkeeper.herddb.build import build_herddb, build_herddb_secret
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.state.cluster import UserCredentials
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.state.log_store import LogStore, log_store
from herdkeeper.herddb.state.tls import TlsUsable
from herdkeeper.herddb.status import summarize_herddb
from herdkeeper.planning.actions import AddToSecret, Apply, Create, CreateHerdRoot, EnsureZnode, SetLogPin
from herdkeeper.shared import names
from herdkeeper.shared.names import ZOOKEEPER_SECURE_PORT, ObjectKey, ZooKeeperNames
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

CLUSTER = quickstart("HerdDBCluster")
LOG = LogStore(ENSEMBLE, "/demo/bk/ledgers", placement_of(quickstart("BookKeeperCluster"), {}), ObjectKey("demo", "bk"))
CREDENTIALS = UserCredentials("herdkeeper", "secret")
ADMINISTRATOR = SqlUser("herdkeeper", "secret")
PODS = ["db-herddb-0", "db-herddb-1"]
SEEN = SqlFleet(
    cluster=CLUSTER,
    objects=objects(),
    bookkeeper=bookkeeper_serving(),
    root_parent=False,
    root=False,
    credentials=None,
    nodes={},
    fresh_password="a-fresh-password",
    fresh_token="a-fresh-token",
)
SETTLED = replace(
    SEEN,
    objects=objects(live(build_herddb(CLUSTER, LOG, "db-herddb-credentials")), pods(PODS)),
    root_parent=True,
    root=True,
    credentials=CREDENTIALS,
)


def at(text):
    return datetime.datetime.fromisoformat(text).timestamp()


def applied(plan):
    return [action.manifest["kind"] for action in plan.actions if isinstance(action, Apply)]


def test_a_new_database_gets_its_znode_its_password_and_then_its_nodes():
    plan = plan_herddb(SEEN)
    assert isinstance(plan.actions[0], EnsureZnode)
    assert plan.actions[0].path == "/demo/db"
    assert [action.manifest["kind"] for action in plan.actions if isinstance(action, Create)] == ["Secret"]
    assert applied(plan)[-1] == "StatefulSet"


def test_on_an_ensemble_with_certificates_the_operator_makes_the_root_before_the_nodes_and_guards_it():
    address = ZooKeeperNames(ObjectKey("demo", "zk")).address(3, ZOOKEEPER_SECURE_PORT)
    bookkeeper = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": address})
    encrypted = with_spec(CLUSTER, tls=Tls(secretName="db-herddb-identity"))
    new = replace(SEEN, bookkeeper=bookkeeper)
    first = plan_herddb(replace(new, cluster=encrypted)).actions[0]
    assert first == CreateHerdRoot(address, "/demo/db/herd", herd_access(ObjectKey("demo", "db"), "bk"))
    for there in (replace(new, root=True), replace(new, root=True, root_parent=True)):
        assert not [
            each for each in plan_herddb(replace(there, cluster=encrypted)).actions if isinstance(each, (CreateHerdRoot, EnsureZnode))
        ]
    unread = plan_herddb(replace(new, root=Unknown("ZooKeeper is silent"), cluster=encrypted))
    assert unread.wait is not None
    assert (unread.actions, unread.wait.reason) == ((), Reason.UNREADABLE)


def test_nodes_wait_until_as_many_bookies_serve_as_a_ledger_needs():
    few = ready(quickstart("BookKeeperCluster"), zoo_keeper_address=ENSEMBLE, ledgers_root="/demo/bk/ledgers", ready_bookies=2)
    unread = ready(quickstart("BookKeeperCluster"), zoo_keeper_address=ENSEMBLE, ledgers_root="/demo/bk/ledgers")
    for bookkeeper in (None, quickstart("BookKeeperCluster"), few, unread):
        plan = plan_herddb(replace(SEEN, bookkeeper=bookkeeper))
        assert plan.actions == ()
        assert plan.wait is not None
        assert plan.wait.reason is Reason.WAITING_FOR_BOOKKEEPER


def test_a_database_is_not_ready_while_no_ledger_can_be_opened_though_its_nodes_serve_what_can_be_read():
    few = with_status(bookkeeper_serving(), **{**bookkeeper_serving().status.model_dump(), "ready_bookies": 2})
    health = summarize_herddb(replace(SETTLED, bookkeeper=few)).health
    assert (health.status, health.reason) == ("False", Reason.WAITING_FOR_BOOKKEEPER)
    assert health.message == (
        "2 SQL nodes serve only reads, since no ledger can be opened: "
        "the BookKeeperCluster bk has 2 writable bookies of the 3 that a ledger needs"
    )
    assert summarize_herddb(SETTLED).health.status == "True"


def test_a_password_that_exists_is_never_made_again():
    plan = plan_herddb(replace(SEEN, credentials=UserCredentials("herdkeeper", "secret")))
    assert not [action for action in plan.actions if isinstance(action, Create)]


def test_a_secret_that_is_older_than_the_tokens_gets_one_and_keeps_it():
    metadata = {"name": "db-herddb-credentials", "uid": "its-uid"}
    written_before = {"users": base64.b64encode(b"herdkeeper,secret,admin\n").decode()}
    old = {("Secret", "db-herddb-credentials"): {"kind": "Secret", "metadata": metadata, "data": written_before}}
    older = replace(SETTLED, objects=objects(SETTLED.objects.items, old))
    added = AddToSecret("db-herddb-credentials", "its-uid", derived((ADMINISTRATOR,), "a-fresh-token"))
    assert plan_herddb(older).actions == (added,)
    secret = old["Secret", "db-herddb-credentials"] | {"data": added.data}
    newer = replace(older, objects=objects(older.objects.items, {("Secret", "db-herddb-credentials"): secret}), fresh_token="another")
    assert plan_herddb(newer).actions == ()


def test_the_token_beside_a_named_secret_stays_when_the_secret_is_looked_at_again():
    own = with_spec(CLUSTER, credentials_secret_ref=SecretReference(name="mine"))
    made = live((build_herddb_secret(own, "db-herddb-users", (SqlUser("admin", "secret"),), "its-token"),))
    seen = replace(SETTLED, objects=objects(SETTLED.objects.items, made), credentials=UserCredentials("admin", "secret"))
    assert [
        action
        for action in plan_herddb(replace(seen, cluster=own)).actions
        if isinstance(action, Apply) and action.manifest["kind"] == "Secret"
    ] == []


def test_a_named_secret_that_is_missing_is_waited_for():
    own = with_spec(CLUSTER, credentials_secret_ref=SecretReference(name="mine"))
    plan = plan_herddb(replace(SEEN, credentials=Problem(Reason.WAITING_FOR_SECRET, "there is no Secret mine"), cluster=own))
    assert plan.actions == ()


def test_nothing_is_touched_while_the_certificate_cannot_be_served():
    encrypted = with_spec(CLUSTER, tls=Tls(secret_name="mine"))
    plan = plan_herddb(
        replace(SETTLED, tls=Problem(Reason.INVALID_SECRET, "the Secret mine: tls.crt is no certificate"), cluster=encrypted)
    )
    assert plan.actions == ()
    assert (plan.wait.reason, plan.wait.message) == (Reason.INVALID_SECRET, "the Secret mine: tls.crt is no certificate")


def test_a_database_whose_stack_refuses_plain_text_serves_sql_with_its_own_certificate_unless_another_one_is_named():
    asks = with_status(
        bookkeeper_serving(),
        **{**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": "zk-zookeeper-0.zk-zookeeper-members.demo.svc:2281"},
    )
    log = log_store(asks)

    def served(cluster):
        config, stateful_set = (item for item in build_herddb(cluster, log, "password") if item["kind"] in ("ConfigMap", "StatefulSet"))
        volumes = stateful_set["spec"]["template"]["spec"]["volumes"]
        (secret,) = [each["secret"]["secretName"] for each in volumes if each["name"] == "tls"]
        return secret, re.findall(r"herdkeeper.tls.plaintext=(\w+)|server.ssl=(\w+)", config["data"]["server.properties"])

    refused = sorted([("refused", ""), ("", "true")])
    assert (served(CLUSTER)[0], sorted(served(CLUSTER)[1])) == ("db-herddb-identity", refused)
    mine = with_spec(CLUSTER, tls=Tls(secret_name="mine", plaintext="Accepted"))
    assert (served(mine)[0], sorted(served(mine)[1])) == ("mine", sorted([("accepted", ""), ("", "true")]))
    waits = plan_herddb(replace(SEEN, bookkeeper=asks, tls=Problem(Reason.WAITING_FOR_SECRET, "it does not exist")))
    assert (waits.actions, waits.wait.reason) == ((), Reason.WAITING_FOR_SECRET)


def test_nodes_that_refuse_plain_text_do_not_go_back_because_a_status_says_that_the_stack_accepts_it():
    secure = {**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": "zk-zookeeper-0.zk-zookeeper-members.demo.svc:2281"}
    log = log_store(with_status(bookkeeper_serving(), **secure))
    served = replace(SETTLED, objects=objects(live(build_herddb(CLUSTER, log, "db-herddb-credentials")), pods(PODS)))
    for forged in ({**secure, "accepts_plaintext": True}, {**secure, "zoo_keeper_address": ENSEMBLE}):
        plan = plan_herddb(replace(served, bookkeeper=with_status(bookkeeper_serving(), **forged)))
        assert plan.actions == ()
        assert plan.wait.reason is Reason.INVALID_SPEC
        assert "set spec.tls (secretName: db-herddb-identity, plaintext: Accepted)" in plan.wait.message


def test_a_database_without_tls_goes_on_while_its_stack_is_moved_and_applications_find_leaders_in_plain_text():
    address = "zk-zookeeper-0.zk-zookeeper-members.demo.svc:2281"
    status = {**bookkeeper_serving().status.model_dump(), "zoo_keeper_address": address, "accepts_plaintext": True}
    moved = replace(SEEN, bookkeeper=with_status(bookkeeper_serving(), **status))
    assert applied(plan_herddb(moved))[-1] == "StatefulSet"
    told = log_store(moved.bookkeeper)
    assert (told.zookeeper_address, told.applications_address) == (address, address.replace("2281", "2181"))
    assert told.readers_secret == "bk-bookie-readers"


def test_tls_rolls_the_nodes_and_a_renewed_certificate_does_not():
    encrypted = with_spec(CLUSTER, tls=Tls(secret_name="mine"))
    seen = replace(SETTLED, tls=TlsUsable("mine", "certificates"))
    assert applied(plan_herddb(replace(seen, cluster=encrypted))) == ["ConfigMap", "StatefulSet"]
    settled = objects(live(build_herddb(encrypted, LOG, "db-herddb-credentials")), pods(PODS))
    renewed = replace(seen, objects=settled, tls=TlsUsable("mine", "other certificates"))
    assert plan_herddb(replace(renewed, cluster=encrypted)).actions == ()


def test_the_database_is_encrypted_once_no_pod_is_left_that_was_made_without_tls():
    encrypted = with_spec(CLUSTER, tls=Tls(secret_name="mine"))
    made = live(build_herddb(encrypted, LOG, "db-herddb-credentials"))
    (template,) = [item["spec"]["template"] for (kind, _), item in made.items() if kind == "StatefulSet"]
    old = pods(PODS)
    new = {key: pod | {"spec": template["spec"]} for key, pod in old.items()}
    half = dict([*list(old.items())[:1], *list(new.items())[1:]])
    away = dict(list(new.items())[1:])
    for there, wanted in ((old, None), (half, None), (new, True), (away, True)):
        seen = replace(SETTLED, objects=objects(made, there))
        assert summarize_herddb(replace(seen, cluster=encrypted)).fields["encrypted"] is wanted
    assert summarize_herddb(SETTLED).fields["encrypted"] is None
    assert summarize_herddb(SEEN).fields["encrypted"] is None


def test_a_database_is_not_called_encrypted_before_the_last_node_that_accepts_plain_text_has_restarted():
    """The condition that is stored is all that tells that a running node accepted it."""
    accepts, refuses = (with_spec(CLUSTER, tls=Tls(secret_name="mine", plaintext=which)) for which in ("Accepted", "Refused"))
    since = "2026-01-01T00:00:00Z"
    known = Condition(
        type="Encrypted", status="False", reason="PlaintextAccepted", message="", last_transition_time=since, observed_generation=1
    )
    before, after, plain = (live(build_herddb(cluster, LOG, "db-herddb-credentials")) for cluster in (accepts, refuses, CLUSTER))
    for made in (before, after, plain):
        made["StatefulSet", "db-herddb"]["status"] = {"updateRevision": "newest"}
    half, done = (pods(PODS), pods(PODS))

    def said(cluster, *found):
        condition = summarize_herddb(replace(SETTLED, cluster=cluster, objects=objects(*found))).conditions.get("Encrypted")
        return None if condition is None else (condition.status, condition.reason, "until all nodes have restarted" in condition.message)

    assert said(accepts, before, done) == ("False", Reason.PLAINTEXT_ACCEPTED, False)
    assert said(refuses, after, done) is None
    closing = with_status(refuses, conditions=(known,))
    assert said(closing, before, done) == ("False", Reason.PLAINTEXT_ACCEPTED, True), "nothing is applied yet"
    half["Pod", PODS[0]]["metadata"]["labels"] = {names.REVISION_LABEL: "older"}
    assert said(closing, after, half) == ("False", Reason.PLAINTEXT_ACCEPTED, True)
    assert said(closing, after, done) is None
    assert said(with_status(CLUSTER, conditions=(known,)), plain, done) is None, "no TLS"


def test_the_status_tells_when_the_certificate_expires_as_long_as_it_can_be_served_with():
    tls = TlsUsable("mine", "certificates", datetime.datetime(2026, 5, 10, 12, tzinfo=datetime.UTC))
    assert summarize_herddb(replace(SETTLED, tls=tls)).fields["certificateExpires"] == "2026-05-10T12:00:00Z"
    assert summarize_herddb(SETTLED).fields["certificateExpires"] is None


def test_a_named_secret_is_not_changed_and_the_nodes_get_a_users_file_made_of_it():
    own = with_spec(CLUSTER, credentials_secret_ref=SecretReference(name="mine"))
    plan = plan_herddb(replace(SEEN, credentials=UserCredentials("admin", "secret"), cluster=own))
    secrets = [
        action.manifest["metadata"]["name"] for action in plan.actions if isinstance(action, Apply) and action.manifest["kind"] == "Secret"
    ]
    assert secrets == ["db-herddb-users"]


def test_what_zookeeper_did_not_answer_is_waited_for():
    plan = plan_herddb(replace(SEEN, root_parent=Unknown("no answer")))
    assert plan.actions == ()
    assert plan.wait is not None
    assert plan.wait.reason is Reason.UNREADABLE


def test_a_settled_database_gets_nothing():
    plan = plan_herddb(SETTLED)
    assert (plan.actions, plan.wait) == ((), None)


def test_a_template_that_its_controller_has_not_seen_yet_is_waited_for():
    found = dict(SETTLED.objects.items)
    stateful_set = found["StatefulSet", "db-herddb"]
    found["StatefulSet", "db-herddb"] = {
        **stateful_set,
        "metadata": {**stateful_set["metadata"], "generation": 2},
        "status": {**stateful_set.get("status", {}), "observedGeneration": 1},
    }
    wait = plan_herddb(replace(SETTLED, objects=replace(SETTLED.objects, items=found))).wait
    assert wait is not None
    assert wait.reason is Reason.ROLLING


def test_serving_nodes_are_not_changed_while_a_bookie_or_a_member_of_the_ensemble_is_disturbed():
    changed = with_spec(CLUSTER, image="herdkeeper/herddb:0.3.0")
    held = plan_herddb(replace(SETTLED, disruption="zk-zookeeper-1 is not Ready (starting)", cluster=changed))
    assert applied(held) == []
    assert held.wait is not None
    assert "zk-zookeeper-1 is not Ready" in held.wait.message


def test_serving_nodes_are_not_changed_while_the_bookies_are_not_ready():
    changed = with_spec(CLUSTER, image="herdkeeper/herddb:0.3.0")
    assert applied(plan_herddb(replace(SETTLED, cluster=changed))) == ["StatefulSet"]
    unready = bookkeeper_serving().model_copy(update={"status": bookkeeper_serving().status.model_copy(update={"conditions": ()})})
    held = plan_herddb(replace(SETTLED, bookkeeper=unready, cluster=changed))
    assert applied(held) == []
    assert held.wait is not None
    assert held.wait.reason is Reason.WAITING_FOR_OTHERS


@pytest.mark.parametrize("reason", ["BookiesMissing", "AutorecoveryDisabled"])
@pytest.mark.parametrize(("writable", "expected"), [(4, ["StatefulSet"]), (2, [])])
def test_serving_nodes_wait_for_no_bookie_that_is_not_made_if_enough_others_are_writable(writable, expected, reason):
    """Nor until somebody enables autorecovery again."""
    changed = with_spec(CLUSTER, image="herdkeeper/herddb:0.3.0")
    status = bookkeeper_serving().status
    missing = status.conditions[0].model_copy(update={"status": "False", "reason": reason})
    fields = {"conditions": (missing,), "ready_bookies": writable}
    lacking = bookkeeper_serving().model_copy(update={"status": status.model_copy(update=fields)})
    assert applied(plan_herddb(replace(SETTLED, bookkeeper=lacking, cluster=changed))) == expected


def derived(users: tuple[SqlUser, ...], token: str):
    """What the generated Secret has beside the login."""
    return {key: base64.b64encode(text.encode()).decode() for key, text in (("users", encode_users(users, token)), ("token", token))}


def secret_of(*users: SqlUser):
    """The generated Secret, with the users file made of these."""
    metadata = {"name": "db-herddb-credentials", "uid": "its-uid"}
    return {("Secret", "db-herddb-credentials"): {"metadata": metadata, "data": derived(users, "a-token")}}


def test_a_changed_password_reaches_the_users_file_and_restarts_nobody():
    changed = replace(
        SETTLED, objects=objects(SETTLED.objects.items, secret_of(ADMINISTRATOR)), credentials=UserCredentials("herdkeeper", "new")
    )
    added = AddToSecret("db-herddb-credentials", "its-uid", {"users": derived((SqlUser("herdkeeper", "new"),), "a-token")["users"]})
    assert plan_herddb(changed).actions == (added,)


def test_a_password_that_stays_changes_nothing():
    settled = replace(SETTLED, objects=objects(SETTLED.objects.items, secret_of(ADMINISTRATOR)))
    assert plan_herddb(settled).actions == ()


def test_declared_users_are_added_changed_and_taken_away_without_a_restart():
    two = with_spec(CLUSTER, users=(UserSecret(secret_name="one"), UserSecret(secret_name="two")))
    found = {"one": UserCredentials("app", "a"), "two": UserCredentials("report", "b")}
    before = secret_of(ADMINISTRATOR)
    for cluster, users, wanted in (
        (two, found, [("herdkeeper", "secret"), ("app", "a"), ("report", "b")]),
        (two, {**found, "two": UserCredentials("report", "other")}, [("herdkeeper", "secret"), ("app", "a"), ("report", "other")]),
        (with_spec(CLUSTER, users=(UserSecret(secret_name="two"),)), found, [("herdkeeper", "secret"), ("report", "b")]),
        (CLUSTER, {}, [("herdkeeper", "secret")]),
    ):
        (action,) = plan_herddb(
            replace(SETTLED, objects=objects(SETTLED.objects.items, before), user_secrets=users, cluster=cluster)
        ).actions
        assert isinstance(action, AddToSecret)
        assert set(action.data) == {"users"}
        made = decode_users(base64.b64decode(action.data["users"]).decode())
        assert [(user.username, user.password) for user in made] == wanted
        before = secret_of(*made)


def test_a_secret_that_is_missing_changes_nobodys_login_and_holds_nothing_else_up():
    one = with_spec(CLUSTER, users=(UserSecret(secret_name="one"),), image="herdkeeper/herddb:0.3.0")
    stored = secret_of(ADMINISTRATOR, SqlUser("app", "a", "one"))
    missing = {"one": Problem(Reason.WAITING_FOR_SECRET, "the Secret does not exist; create it")}
    seen = replace(SETTLED, objects=objects(SETTLED.objects.items, stored), user_secrets=missing)
    assert applied(plan_herddb(replace(seen, cluster=one))) == ["StatefulSet"]
    assert not [action for action in plan_herddb(replace(seen, cluster=one)).actions if isinstance(action, AddToSecret)]
    new_password = replace(seen, credentials=UserCredentials("herdkeeper", "new"))
    (added,) = [action for action in plan_herddb(replace(new_password, cluster=one)).actions if isinstance(action, AddToSecret)]
    made = decode_users(base64.b64decode(added.data["users"]).decode())
    assert made == (SqlUser("herdkeeper", "new"), SqlUser("app", "a", "one"))


def test_a_generated_password_rolls_nobody_once_it_can_be_read():
    made = plan_herddb(replace(SEEN, root_parent=True)).actions[-1]
    assert isinstance(made, Apply)
    assert made.manifest["spec"] == build_herddb(CLUSTER, LOG, "db-herddb-credentials")[-1]["spec"]


def test_a_pin_that_nobody_would_move_on_goes_with_the_last_tablespace_resource():
    path = "/demo/db/herd/logPins/a-uuid/second-disk"
    old = with_metadata(CLUSTER, creation_timestamp="2026-11-01T00:00:00Z")
    seen = replace(SETTLED, cluster=old, ownerless_pins=((path, 3),), now=at("2026-11-03T00:00:00Z"))
    (step,) = plan_herddb(seen).actions
    assert isinstance(step, SetLogPin)
    assert (step.path, step.lsn, step.version) == (path, None, 3)


def test_a_template_that_may_be_refused_for_long_holds_up_nothing_that_restarts_no_node():
    changed = with_spec(with_metadata(CLUSTER, creation_timestamp="2026-11-01T00:00:00Z"), image="herdkeeper/herddb:0.3.0")
    pins = (("/demo/db/herd/logPins/a-uuid/second-disk", 3),)
    made = plan_herddb(replace(SETTLED, cluster=changed, ownerless_pins=pins, now=at("2026-11-03T00:00:00Z"))).actions
    assert [type(action) for action in made] == [Apply, SetLogPin]


@pytest.mark.parametrize("made", ["2026-11-02T12:00:00Z", ""])
def test_the_log_of_one_disk_stays_where_the_cluster_comes_from_a_backup_before_its_tablespaces(made):
    path = "/demo/db/herd/logPins/a-uuid/second-disk"
    seen = replace(SETTLED, cluster=with_metadata(CLUSTER, creation_timestamp=made), ownerless_pins=((path, 3),))
    assert plan_herddb(replace(seen, now=at("2026-11-03T00:00:00Z"))).actions == ()
