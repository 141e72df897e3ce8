"""The lists of Java classes that servers load, and the archives that are made from them."""

from __future__ import annotations

import subprocess
from zipfile import ZipFile

import pytest

from herdkeeper_e2e.class_lists import IMAGES, LIST, listed
from herdkeeper_e2e.server_processes import class_path, jars_of

pytestmark = pytest.mark.integration
SERVERS = ("zookeeper", "bookkeeper", "herddb")
OF_JAVA = ("java/", "javax/", "jdk/", "sun/", "com/sun/")


@pytest.mark.parametrize("server", SERVERS)
def test_java_takes_the_archive_of_a_servers_classes(server: str) -> None:
    refuses_to_start_without = ["java", "-Xshare:on", *class_path(jars_of(server)), "-version"]
    assert "-XX:SharedArchiveFile=" in " ".join(refuses_to_start_without)
    done = subprocess.run(refuses_to_start_without, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("server", SERVERS)
def test_a_list_is_of_the_jars_that_the_image_has(server: str) -> None:
    """After a change of jars: make lock-classes. A few names may be those of classes that were renamed here since."""
    there = {name.removesuffix(".class") for jar in jars_of(server).glob("*.jar") for name in ZipFile(jar).namelist()}
    names = [name for name in listed(IMAGES / server / LIST) if not name.startswith(OF_JAVA)]
    gone = [name for name in names if name not in there]
    assert len(names) > 1000
    assert len(gone) <= len(names) // 50, f"run make lock-classes: {gone[:20]}"
