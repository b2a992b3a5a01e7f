# /// tool
# description = """
# List what was committed since a release, grouped: breaking, new, changed, mended, other; each with its
# commit and the issues it names. Merges are left out.
# """
# optional = true
#
# [parameters.since]
# type = "string"
# description = "Tag or commit of the last release; empty is the newest tag, or all there is without one."
# default = ""
#
# [parameters.most]
# type = "integer"
# description = "The most commits that are listed, the newest first."
# minimum = 1
# maximum = 500
# default = 200
# ///
import re

KINDS = {
    "new": "add allow bring create feat give implement introduce let offer provide show support",
    "mended": "avoid bugfix close correct fix handle keep mend prevent repair restore stop",
    "changed": "bump change deprecate drop make move perf refactor remove rename replace revert update",
}
CONVENTIONAL = re.compile(r"^([A-Za-z]+)(\([^)]*\))?(!?): +(.*)$")
ISSUE = re.compile(r"#[0-9]+")


def git(line):
    done = shell("git " + line)
    if done["exit_code"] != 0:
        raise ValueError("git " + line + ": " + done["output"].strip())
    return done["output"]


def kind_of(subject, body):
    found = CONVENTIONAL.match(subject)
    if (found and found.group(3)) or "BREAKING CHANGE" in body:
        return "breaking"
    words = subject.lower().split()
    first = found.group(1).lower() if found else (words[0] if words else "")
    for kind, listed in KINDS.items():
        if first in listed.split():
            return kind
    return "other"


def run(since, most):
    if since and not re.match(r"^[A-Za-z0-9_][A-Za-z0-9._/@^~-]*$", since):
        raise ValueError("no name of a tag or commit: " + since)
    if not since:
        tags = git("tag --sort=-creatordate --merged HEAD").split()
        since = tags[0] if tags else ""
    reach = since + "..HEAD" if since else "HEAD"
    log = git("log --no-merges -n " + str(most + 1) + " --format='@commit %h %s%n%b' " + reach + " --")
    commits = log.split("@commit ")[1:]
    found = {"since": since or "the beginning", "commits": min(len(commits), most)}
    if len(commits) > most:
        found["left_out"] = (
            "there are more: ask for an earlier part with a later `since`, or with a larger `most`"
        )
    for kind in ["breaking", "new", "changed", "mended", "other"]:
        found[kind] = []
    for commit in commits[:most]:
        head, _, body = commit.partition("\n")
        name, _, subject = head.partition(" ")
        change = {"commit": name, "subject": subject.strip()}
        issues = sorted(set(ISSUE.findall(commit)))
        if issues:
            change["issues"] = issues
        found[kind_of(subject.strip(), body)].append(change)
    return found
