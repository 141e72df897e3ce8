"""Lists of Java classes."""

from pathlib import Path

from herdkeeper_e2e.class_lists import image_of, listed, merged


def test_lists_are_merged_without_comments_and_what_no_archive_of_theirs_can_add() -> None:
    first = [
        "# made by Java",
        "a/B",
        "java/lang/Object",
        "@lambda-proxy a/B run ()V",
        "jdk/jfr/internal/handlers/EventHandler54_1795996083657-11",
    ]
    second = ["a/B", "a/Maker id: 7 super: 1 source: file:/a.jar", "a/C "]
    assert merged([first, second], ["java/lang/Object"]) == ["@lambda-proxy a/B run ()V", "a/B", "a/C"]


def test_what_java_generates_is_no_name_of_a_class(tmp_path: Path) -> None:
    file = tmp_path / "classes.lst"
    file.write_text("# made\na/B\n@lambda-proxy a/B run ()V\n")
    assert listed(file) == ["a/B"]


def test_each_process_runs_with_the_jars_of_one_image() -> None:
    images = {"zookeeper": "zookeeper", "bookie-0": "bookkeeper", "autorecovery": "bookkeeper", "node": "herddb", "node-1": "herddb"}
    assert {process: image_of(process) for process in images} == images
