"""Scenarios that broke a promise once, as small as they could be made, and what was wrong."""

FOUND = {
    # A clock set back by three hours held up everything that was planned: the queries to Store, the
    # giving up of what is lost, the sync messages that tell others. Now a channel's clock goes on
    # (`steady_clock.py`). Drawn by seeds 315, 510 and 1016.
    "a clock set back delays everything": (
        '{"seed":1016,"participants":3,"writes":[[717,1]],"faults":['
        '{"kind":"crash","at_ms":1362,"until_ms":601362,"who":1},'
        '{"kind":"outage","at_ms":95173,"until_ms":1295173,"who":2},'
        '{"kind":"clock_jump","at_ms":100868,"who":2,"by_ms":-10800000}],'
        '"conditions":{"loss":0.6,"duplication":0.2}}'
    ),
    # A cycle is cut by giving up what each of its messages waits for; but giving up for the first
    # one may deliver the next, which was declared lost all the same. Drawn by seed 10464.
    "what a cut cycle delivers is not lost": (
        '{"seed":10464,"participants":2,"writes":[[1385240,1]],"faults":['
        '{"kind":"outage","at_ms":176223,"until_ms":1376223,"who":0},'
        '{"kind":"hostile","at_ms":357915,"attack":"cycle","count":1}],"store":null}'
    ),
    # The simulation's own: a participant that writes to disk at the pace of the looks at it was
    # never found at rest. Drawn by seed 10530.
    "who is busy with the disk is at rest": (
        '{"seed":10530,"participants":1,"writes":[],"faults":['
        '{"kind":"hostile","at_ms":16066,"attack":"unknown_dependencies","count":20},'
        '{"kind":"crash","at_ms":119035,"until_ms":119135,"who":0}],"store":null,'
        '"commit_ms":2000,"durable":[0]}'
    ),
    # Who starts from its disk refers to what it holds no more as it was on the wire, so that nobody
    # can be given it where its sender has left: of others' messages the repair cache must outlive
    # a restart, too, where there is no Store (`RepairOptions.cache_durably`). Drawn by seed 101.
    "what a restarted participant refers to can be had": (
        '{"seed":101,"participants":6,"writes":[[2032,4],[4032,4],[4232,4]],"faults":['
        '{"kind":"leave","at_ms":18394,"who":0},{"kind":"leave","at_ms":43918,"who":4},'
        '{"kind":"leave","at_ms":66057,"who":5},'
        '{"kind":"crash","at_ms":84159,"until_ms":89159,"who":1}],'
        '"conditions":{"loss":0.1,"duplication":0.2},"store":null,'
        '"commit_ms":2000,"durable":[0,1,4,5]}'
    ),
    # A clock that is set back while a participant is down: what it has on disk is planned for hours
    # after it starts again. Times from disk are cut to what could be planned now (`restoring.py`).
    "a clock set back while nobody looks": (
        '{"seed":1,"participants":1,"writes":[],"faults":['
        '{"kind":"hostile","at_ms":10000,"attack":"unknown_dependencies","count":1},'
        '{"kind":"crash","at_ms":20000,"until_ms":30000,"who":0},'
        '{"kind":"clock_jump","at_ms":25000,"who":0,"by_ms":-10800000}],'
        '"store":null,"durable":[0]}'
    ),
    # Two late messages that one step delivers below the part of the log that is in memory: the
    # archive did not count the first when the place of the second was told. Drawn by seeds 16, 41,
    # 59, 62 and 70.
    "a step counts what it put below the window": (
        '{"seed":41,"participants":4,"writes":[[36519,3],[38519,3],[38524,3],[38674,0],[40674,1],'
        '[40679,1],[40684,1],[44684,1],[44839,1],[49289,1],[49289,1]],"faults":['
        '{"kind":"crash","at_ms":33471,"until_ms":38471,"who":1}],"store":null,'
        '"parameters":{"bloom_capacity":200,"max_retry_attempts":2,"log_window_entries":8,'
        '"repair_buffer_size":20},"durable":[0,1,2,3]}'
    ),
}
