"""What pytest reported, read and kept."""

from pathlib import Path

from interop.compat.results import Case, Suite, read

REPORT = """<testsuites><testsuite>
<testcase classname="tests.relay.test_publish.TestIt" name="test_one[a.b]"/>
<testcase classname="tests.relay.test_publish.TestIt" name="test_two">
  <failure message="AssertionError: no&#10;more">long</failure>
</testcase>
<testcase classname="tests.relay.test_publish.TestIt" name="test_one[a.b]">
  <error message="failed on teardown">long</error>
</testcase>
<testcase classname="tests.relay.test_rln.TestRln" name="test_three">
  <skipped message="needs RLN"/>
</testcase>
</testsuite></testsuites>"""


def test_a_report_is_read_to_one_case_a_test(tmp_path: Path) -> None:
    report = tmp_path / "relay.xml"
    report.write_text(REPORT)
    assert list(read(report)) == [
        Case("test_publish", "TestIt::test_one[a.b]", "failed", "failed on teardown"),
        Case("test_publish", "TestIt::test_two", "failed", "AssertionError: no"),
        Case("test_rln", "TestRln::test_three", "skipped", "needs RLN"),
    ]


def test_a_suite_is_read_as_it_was_saved(tmp_path: Path) -> None:
    suite = Suite("relay", "commit 33596417", "2026-11-23", (Case("f", "T::t", "passed"),), "")
    suite.save(tmp_path)
    (file,) = tmp_path.glob("*.json")
    assert Suite.load(file) == suite
    assert suite.count("passed") == 1
    assert suite.count("failed") == 0
