"""Measured figures: what tests keep with `record_property("figure", text)` stands at the end of the run."""


def pytest_terminal_summary(terminalreporter):
    lines = [
        text
        for report in terminalreporter.getreports("passed")
        for name, text in getattr(report, "user_properties", [])
        if name == "figure"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.line(line)
