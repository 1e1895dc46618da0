"""Atomic writing: a file is there whole or is as it was."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap

import pytest

from gtvcvx.files import _atomic
from gtvcvx.files._atomic import atomic_write


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_writes_text_as_utf8_with_line_feeds(tmp_path):
    with atomic_write(tmp_path / "a.txt") as handle:
        handle.write("λ = 1\n")
    assert (tmp_path / "a.txt").read_bytes() == "λ = 1\n".encode()
    assert names(tmp_path) == ["a.txt"]


def test_writes_bytes_and_replaces(tmp_path):
    target = tmp_path / "a.bin"
    target.write_bytes(b"a longer old content")
    with atomic_write(target, "wb") as handle:
        handle.write(b"\r\n\x00")
        assert target.read_bytes() == b"a longer old content"
    assert target.read_bytes() == b"\r\n\x00"
    assert names(tmp_path) == ["a.bin"]


def test_name_without_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic_write("a.txt") as handle:
        handle.write("x")
    assert names(tmp_path) == ["a.txt"]


def test_long_name(tmp_path):
    target = tmp_path / ("a" * 250)
    with atomic_write(target) as handle:
        handle.write("x")
    assert target.read_text() == "x"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("existing", [True, False])
def test_failure_leaves_everything_as_it_was(tmp_path, error, existing):
    target = tmp_path / "a.txt"
    if existing:
        target.write_text("old")

    def fail_half_way():
        with atomic_write(target) as handle:
            handle.write("half of the ne")
            handle.flush()
            assert len(names(tmp_path)) == 1 + existing
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert names(tmp_path) == (["a.txt"] if existing else [])
    assert not existing or target.read_text() == "old"


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_failure_of_any_last_step_leaves_everything_as_it_was(tmp_path, monkeypatch, step, error):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail(*args):
        raise error

    monkeypatch.setattr(_atomic.os, step, fail)
    with pytest.raises(error), atomic_write(target) as handle:
        handle.write("new")
    monkeypatch.undo()
    assert names(tmp_path) == ["a.txt"]
    assert target.read_text() == "old"


def test_content_reaches_the_disk_before_the_rename(tmp_path, monkeypatch):
    events = []
    for step in ("fsync", "replace"):
        original = getattr(os, step)

        def recorded(*args, step=step, original=original):
            events.append(step)
            return original(*args)

        monkeypatch.setattr(_atomic.os, step, recorded)
    with atomic_write(tmp_path / "a.txt") as handle:
        handle.write("x")
    assert events == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupted_process_leaves_nothing(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    script = textwrap.dedent(
        """
        import sys, time
        from gtvcvx.files._atomic import atomic_write
        with atomic_write(sys.argv[1]) as handle:
            handle.write("new")
            handle.flush()
            print("writing", flush=True)
            time.sleep(60)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(target)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in errors
    assert names(tmp_path) == ["a.txt"]
    assert target.read_text() == "old"


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
def test_permissions_follow_the_umask_or_the_old_file(tmp_path):
    old = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new.txt") as handle:
            handle.write("x")
        (tmp_path / "old.txt").write_text("x")
        (tmp_path / "old.txt").chmod(0o604)
        with atomic_write(tmp_path / "old.txt") as handle:
            handle.write("y")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "old.txt").stat().st_mode) == 0o604


@pytest.mark.skipif(os.name != "posix", reason="making links needs rights elsewhere")
def test_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "real.txt"
    target.write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    with atomic_write(link) as handle:
        handle.write("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_refuses_missing_folder_other_kinds_and_modes(tmp_path):
    with (
        pytest.raises(ValueError, match=r"there is no folder .*nowhere"),
        atomic_write(tmp_path / "nowhere" / "a.txt"),
    ):
        pytest.fail("the block must not run")
    with pytest.raises(ValueError, match="not a regular file"), atomic_write(tmp_path):
        pytest.fail("the block must not run")
    with pytest.raises(ValueError, match="mode: 'w' or 'wb'"):
        atomic_write(tmp_path / "a.txt", "a")
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no /dev/null")
def test_refuses_to_replace_a_device():
    with pytest.raises(ValueError, match="not a regular file"), atomic_write("/dev/null"):
        pytest.fail("the block must not run")
