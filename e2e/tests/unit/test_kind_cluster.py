"""What the test cluster is made from: the API server's audit policy and log are where it looks for them, in its pod and in its node."""

from __future__ import annotations

import subprocess
from typing import Any

import yaml

from herdkeeper_e2e.cluster import REPOSITORY
from herdkeeper_e2e.control_plane import AUDIT_POLICY, LOGGED_DRIVER, OPERATOR_USER

KIND = REPOSITORY / "e2e/kind"


def call(function: str, *arguments: str, state: str = "/state") -> str:
    """What a function of cluster.sh prints."""
    command = f'eval "$(sed -n "/^{function}()/,/^}}/p" "$here/cluster.sh")"; {function} {" ".join(arguments)}'
    environment = {"PATH": "/usr/bin:/bin", "here": str(KIND), "state": state}
    return subprocess.run(["bash", "-euc", command], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def configuration(mode: str) -> dict[str, Any]:
    """As cluster.sh makes it."""
    return dict(yaml.safe_load(call("configuration", mode, "/store")))


def of_api_server() -> dict[str, Any]:
    """What kubeadm is told of it."""
    (patch,) = configuration("built")["kubeadmConfigPatches"]
    return dict(yaml.safe_load(patch)["apiServer"])


def test_what_depends_on_the_machine_is_filled_in() -> None:
    for mode, own_network in (("built", True), ("pulled", False)):
        made = configuration(mode)
        assert made["networking"]["disableDefaultCNI"] is own_network
        mounted = [[(mount["hostPath"], mount["containerPath"]) for mount in node["extraMounts"]] for node in made["nodes"]]
        images = ("/store", "/kind/images")
        assert mounted == [[images, ("/state/audit-policy.yaml", "/kind/audit-policy.yaml")], [images], [images], [images]]


def test_a_folder_that_the_engine_made_of_the_audit_policy_is_replaced(tmp_path) -> None:
    (tmp_path / "audit-policy.yaml").mkdir()
    (tmp_path / "mode").write_text("built")
    call("fresh_state", state=str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == [AUDIT_POLICY.name]
    assert (tmp_path / AUDIT_POLICY.name).read_text() == AUDIT_POLICY.read_text()


def test_the_api_server_s_pod_mounts_its_audit_policy_and_the_folder_of_its_log_from_its_node() -> None:
    server = of_api_server()
    volumes = {volume["mountPath"]: volume for volume in server["extraVolumes"]}
    policy, log = server["extraArgs"]["audit-policy-file"], server["extraArgs"]["audit-log-path"]
    of_policy, of_log = volumes[policy], volumes[log.rpartition("/")[0]]
    (control_plane,) = (node for node in configuration("built")["nodes"] if node["role"] == "control-plane")
    assert of_policy["hostPath"] in [mount["containerPath"] for mount in control_plane["extraMounts"]]
    assert (of_policy["readOnly"], of_policy["pathType"]) == (True, "File")
    assert ("readOnly" in of_log, of_log["pathType"]) == (False, "DirectoryOrCreate")
    assert f"zcat -f {of_log['hostPath']}/*" in (KIND / "cluster.sh").read_text()


def test_the_log_is_bounded() -> None:
    arguments = of_api_server()["extraArgs"]
    assert {type(value) for value in arguments.values()} == {str}, "kubeadm takes no numbers there"
    assert int(arguments["audit-log-maxsize"]) * (int(arguments["audit-log-maxbackup"]) + 2) <= 250
    assert arguments["audit-log-compress"] == "true"


def test_only_requests_of_the_operator_and_of_one_tests_driver_are_logged_and_no_content_of_an_object() -> None:
    policy = yaml.safe_load(AUDIT_POLICY.read_text())
    assert policy["rules"] == [{"level": "Metadata", "users": [OPERATOR_USER, LOGGED_DRIVER]}, {"level": "None"}]
    assert policy["omitStages"] == ["RequestReceived"]
