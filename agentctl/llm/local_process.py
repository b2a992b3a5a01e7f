"""The process that holds an embedded model: llama.cpp's HTTP server on loopback, until its parent is gone.

Run by `local_server.py` with one JSON line on standard input; answers with one JSON line on standard output,
`{"address": URL}` or `{"error": TEXT}`. The end of standard input ends the process: it cannot outlive the
run, however that ends.
"""

import json
import os
import sys

import xllamacpp


def main() -> None:
    """Serve until standard input ends."""
    settings = json.loads(sys.stdin.readline())
    parameters = xllamacpp.CommonParams()
    parameters.model.path = settings["path"]
    parameters.model_alias = {settings["alias"]}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [settings["key"]]
    parameters.n_ctx = settings["context"]
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = settings["threads"]
    parameters.cpuparams_batch.n_threads = settings["prompt_threads"]
    parameters.offline = True
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.verbosity = 1
    try:
        server = xllamacpp.Server(parameters)
        _say({"address": server.listening_address})
    except Exception as error:  # noqa: BLE001 - whatever the runtime raises is told to the parent
        _say({"error": str(error) or type(error).__name__})
        os._exit(1)
    sys.stdin.read()
    # No farewell to the threads of the runtime: a reply that is being written may take minutes to stop.
    os._exit(0)


def _say(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
