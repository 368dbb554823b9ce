"""Scenarios that broke a promise once, as small as they could be made, and what was wrong."""

FOUND = {
    # A clock set back by three hours held up everything that was planned: the queries to Store, the
    # giving up of what is lost, the sync messages that tell others. Now a channel's clock goes on
    # (`MonotonicWallClock`). Drawn by seeds 315, 510 and 1016.
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
    "a participant that writes to disk is at rest": (
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
    "a clock set back while a participant is down": (
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
    # A full buffer of repair requests made room before a new entry was planned, so that each new
    # one evicted one that waited; that one came back with a later T_req at the next sync message
    # and evicted another, and none was ever due. Now the new entry is planned first, and of all
    # entries of all owners who have the most the one due last goes. Ten of 3,000 seeds ended so.
    "a full request buffer lets its entries become due, seed 7400168": (
        '{"seed":7400168,"participants":9,"writes":[[1473411,4],[1473411,4],[1893411,6],'
        '[2313411,5],[2733561,0]],"faults":[{"kind":"join","at_ms":4548112,"who":7}],'
        '"conditions":{"latency":[1,1000,1],"loss":0.6},"store":null,'
        '"parameters":{"max_retry_attempts":0,"sync_min_interval_ms":10000,'
        '"incoming_messages":20,"repair_buffer_size":4},"commit_ms":2000,"durable":[0,3,8]}'
    ),
    "a full request buffer lets its entries become due, seed 7400328": (
        '{"seed":7400328,"participants":8,"writes":[[34006,6],[34156,7],[40471,4],[42476,1],'
        '[42481,0],[44481,3]],"faults":[{"kind":"crash","at_ms":82175,"until_ms":87175,'
        '"who":3}],"store":null,"parameters":{"retry_interval_ms":5000,"max_retry_attempts":2,'
        '"sync_min_interval_ms":10000,"log_window_entries":8,"repair_buffer_size":4},'
        '"commit_ms":3,"durable":[5]}'
    ),
    "a full request buffer lets its entries become due, seed 7400470": (
        '{"seed":7400470,"participants":8,"writes":[[277,3],[477,3],[40477,5],[42477,1],[82477,'
        "1],[82677,3],[122677,2],[122877,1],[123077,5],[163077,1],[165077,7],[167077,3],"
        "[167277,7],[169277,3],[171277,1],[171477,1],[171677,7],[171877,3],[173877,2],[213877,"
        "3],[460277,5],[460477,5],[460677,1],[500877,7],[540877,2],[542877,3],[622877,1]],"
        '"faults":[],"conditions":{"latency":[1,1000,1],"loss":0.9,"duplication":0.2},'
        '"store":{"answer":[20,200,1]},"parameters":{"max_retry_attempts":0,'
        '"sync_min_interval_ms":10000,"log_window_entries":8,"repair_buffer_size":4},'
        '"commit_ms":50,"durable":[0,1,2,3,4,6,7],"publish_ms":1000}'
    ),
    "a full request buffer lets its entries become due, seed 7400520": (
        '{"seed":7400520,"participants":6,"writes":[[2978,2],[5133,5],[5133,4],[7133,3],[7283,'
        '2]],"faults":[{"kind":"crash","at_ms":88626,"until_ms":688626,"who":1}],"store":null,'
        '"parameters":{"bloom_capacity":20,"max_retry_attempts":2,"sync_min_interval_ms":10000,'
        '"incoming_messages":4,"log_window_entries":8,"repair_buffer_size":4},"commit_ms":3,'
        '"durable":[0,4,5],"publish_ms":1000}'
    ),
    "a full request buffer lets its entries become due, seed 7401014": (
        '{"seed":7401014,"participants":6,"writes":[[1084443,5],[1124443,5],[1124443,5],'
        '[1164443,5],[1164743,5]],"faults":[{"kind":"crash","at_ms":2278532,"until_ms":2283532,'
        '"who":3}],"store":null,"parameters":{"retry_interval_ms":5000,'
        '"sync_min_interval_ms":10000,"repair_buffer_size":4},"commit_ms":2000,"durable":[0,1,'
        "2,4,5]}"
    ),
    "a full request buffer lets its entries become due, seed 7401574": (
        '{"seed":7401574,"participants":6,"writes":[],"faults":[{"kind":"crash",'
        '"at_ms":1948883,"until_ms":2548883,"who":4},{"kind":"hostile","at_ms":2389971,'
        '"attack":"forged_sender","count":20}],"store":null,"parameters":{"bloom_capacity":200,'
        '"sync_min_interval_ms":10000,"repair_buffer_size":4},"commit_ms":50,"durable":[0,1,3,'
        "4]}"
    ),
    "a full request buffer lets its entries become due, seed 7402304": (
        '{"seed":7402304,"participants":6,"writes":[[420733,3],[422733,3],[842733,5],[844733,'
        '0],[844883,3]],"faults":[{"kind":"join","at_ms":1059298,"who":4}],'
        '"conditions":{"loss":0.3},"store":null,"parameters":{"retry_interval_ms":5000,'
        '"max_retry_attempts":0,"sync_min_interval_ms":10000,'
        '"timeout_for_lost_messages_ms":60000,"repair_buffer_size":4},"commit_ms":2000,'
        '"durable":[0,1,2,3,4,5]}'
    ),
    "a full request buffer lets its entries become due, seed 7402305": (
        '{"seed":7402305,"participants":9,"writes":[[2910,4],[4910,0],[5060,1],[5210,7],[45210,'
        '6]],"faults":[{"kind":"crash","at_ms":272937,"until_ms":277937,"who":8}],"store":null,'
        '"parameters":{"bloom_capacity":20,"max_retry_attempts":0,"sync_min_interval_ms":10000,'
        '"repair_buffer_size":4},"commit_ms":2000,"durable":[0,6],"publish_ms":1000}'
    ),
    "a full request buffer lets its entries become due, seed 7402320": (
        '{"seed":7402320,"participants":5,"writes":[[1128015,4],[1550015,3],[2930015,2],'
        '[2932015,4],[3356015,2]],"faults":[{"kind":"crash","at_ms":3113177,"until_ms":3713177,'
        '"who":0}],"store":null,"parameters":{"retry_interval_ms":5000,"max_retry_attempts":0,'
        '"sync_min_interval_ms":10000,"repair_buffer_size":4},"commit_ms":3,"durable":[1,2,3,'
        '4],"publish_ms":1000}'
    ),
    "a full request buffer lets its entries become due, seed 7402833": (
        '{"seed":7402833,"participants":5,"writes":[[166655,2],[167055,2],[209255,2],[249255,'
        '2],[291455,2],[291655,2]],"faults":[{"kind":"crash","at_ms":516324,"until_ms":516424,'
        '"who":2}],"store":null,"parameters":{"bloom_capacity":200,"max_retry_attempts":0,'
        '"sync_min_interval_ms":10000,"timeout_for_lost_messages_ms":60000,'
        '"incoming_messages":4,"log_window_entries":8,"repair_buffer_size":4},"commit_ms":3,'
        '"durable":[0,4],"publish_ms":1000}'
    ),
    # The simulation's own: a group counted as quiet while a message was delivered and not on disk
    # yet, which others did not have. Drawn by seed 7401293.
    "what is not on disk yet is not at rest": (
        '{"seed":7401293,"participants":3,"writes":[[2725,0],[2730,0],[2735,0],[4885,0],[9040,'
        '0],[9340,0]],"faults":[{"kind":"leave","at_ms":28676,"who":0},{"kind":"join",'
        '"at_ms":29797,"who":1}],"conditions":{"latency":[50,20000,4],"loss":0.3},"store":null,'
        '"commit_ms":2000,"durable":[0,1,2]}'
    ),
    # One message with a Lamport timestamp hours ahead of the time: all later ones fall into one
    # second, which was not compared before its time had come. Drawn by seed 8103021.
    "a lie about the time hides no difference": (
        '{"seed":8103021,"participants":4,"writes":[[2775287,1],[2775437,3]],"faults":[{"kind":'
        '"hostile","at_ms":32561,"attack":"lamport_ahead","count":1}],"conditions":{"loss":0.3},'
        '"store":null,"parameters":{"bloom_capacity":200,"causal_history_size":1,'
        '"sync_min_interval_ms":10000,"repair_buffer_size":4},"commit_ms":50,"durable":[1]}'
    ),
    # The simulation's own: a participant that still named one whose log it had come to equal was
    # taken to know of another difference. Drawn by seed 8105480.
    "a difference that is over stands for no other one": (
        '{"seed":8105480,"participants":5,"writes":[[335,0],[40335,4],[40535,0],[42535,1],[42735,'
        "0],[44735,0],[84735,4],[84935,4],[124935,4],[164935,4],[165135,1],[205135,0],[207135,4],"
        "[209135,4],[211135,1],[251135,1],[251335,4],[251535,0],[291535,1],[291735,0]],"
        '"faults":[{"kind":"partition","at_ms":71845,"until_ms":311845,"island":[0,4],'
        '"direction":"out"},{"kind":"outage","at_ms":129840,"until_ms":369840,"who":1},'
        '{"kind":"outage","at_ms":291294,"until_ms":321294,"who":4}],"conditions":{"loss":0.6,'
        '"duplication":0.8},"store":null,"parameters":{"causal_history_size":1,'
        '"max_retry_attempts":2,"repair_buffer_size":20},"commit_ms":50,"durable":[0,2,3,4]}'
    ),
    # The simulation's own: a participant counted as at rest while a slow Store had not answered
    # what it asked at its start. Drawn by seed 8200798.
    "a participant that waits for Store is not at rest": (
        '{"seed":8200798,"participants":4,"writes":[[537,2],[687,0]],"faults":[{"kind":"leave",'
        '"at_ms":14452,"who":1},{"kind":"leave","at_ms":19784,"who":2},{"kind":"store_away",'
        '"at_ms":29627,"until_ms":1229627},{"kind":"join","at_ms":41277,"who":3}],'
        '"conditions":{"loss":0.6,"duplication":0.2},"store":{"answer":[500,30000,2],"lies":0.9},'
        '"parameters":{"bloom_capacity":20,"sync_min_interval_ms":10000,'
        '"timeout_for_lost_messages_ms":60000},"publish_ms":1000}'
    ),
    # The simulation's own: with a causal history of 1 a latecomer has 64 messages given one after
    # the other, each by T_req and T_resp of the guide, and that takes longer than an hour. Drawn by
    # seed 8201744.
    "a chain is walked back one repair a message": (
        '{"seed":8201744,"participants":2,"writes":[[529983,1],[654583,1],[656583,1],[696583,1],'
        "[698583,1],[700583,1],[700783,1],[702783,1],[702983,1],[703183,1],[703383,1],[705383,1],"
        "[745383,1],[785383,1],[785583,1],[825583,1],[867783,1],[867983,1],[868183,1],[908183,1],"
        "[908383,1],[948383,1],[988383,1],[988583,1],[988783,1],[990783,1],[1030783,1],[1070783,"
        "1],[1070983,1],[1110983,1],[1150983,1],[1152983,1],[1192983,1],[1194983,1],[1276983,1],"
        "[1316983,1],[1317183,1],[1319183,1],[1319383,1],[1359383,1],[1361383,1],[1361583,1]],"
        '"faults":[{"kind":"store_away","at_ms":404659,"until_ms":1604659},{"kind":"join",'
        '"at_ms":1295267,"who":0}],"conditions":{"loss":0.9},"parameters":{"bloom_capacity":200,'
        '"causal_history_size":1,"max_retry_attempts":0,"repair_buffer_size":20},"commit_ms":50,'
        '"durable":[1],"publish_ms":1000}'
    ),
    # A message that was on its way to the node when an epoch of the rate limit ended was out in the
    # next one and counted in the one before, so that the next had one message too many.
    "an epoch counts what goes out in it, seed 22000425": (
        '{"seed":22000425,"participants":3,"writes":[[11339,2],[11339,2],[13339,2],[13339'
        ",2],[13339,2],[13339,2],[15339,2],[15344,2],[15349,2],[17349,2],[19349,2],[19349"
        ',2],[21349,2]],"faults":[{"kind":"join","at_ms":105125,"who":0}],"conditions":{"'
        'loss":0.6},"store":null,"parameters":{"max_retry_attempts":2,"sync_min_interval_'
        'ms":10000,"repair_buffer_size":4},"habits":{"budget":20},"commit_ms":2000,"durab'
        'le":[0,1,2]}'
    ),
    # The simulation's own: a payload that was given up, and that a restart put together with what
    # came since, counted as half there. Drawn by seed 22000515.
    "a restart may put together what was given up": (
        '{"seed":22000515,"participants":4,"writes":[[745,0],[750,3],[750,3],[755,3],[905'
        ',3]],"faults":[{"kind":"clock_jump","at_ms":8141,"who":2,"by_ms":600000},{"kind"'
        ':"crash","at_ms":32004,"until_ms":37004,"who":2}],"conditions":{"latency":[50,20'
        '000,4],"duplication":0.2},"store":{"answer":[20,200,1],"lies":0.9},"habits":{"pa'
        'yload_bytes":600,"segmentation":"nim-segmentation","segment_bytes":200,"confirms'
        '":0.9},"commit_ms":3,"durable":[1,2,3]}'
    ),
    "an epoch counts what goes out in it, seed 22000554": (
        '{"seed":22000554,"participants":3,"writes":[[420725,1],[420925,1],[421125,1],[46'
        '1125,1],[461325,0],[505325,1]],"faults":[{"kind":"hostile","at_ms":527470,"attac'
        'k":"request_storm","count":3}],"conditions":{"latency":[50,20000,4],"loss":0.1},'
        '"store":null,"habits":{"budget":10,"epoch_s":10},"durable":[0,2],"publish_ms":10'
        "00}"
    ),
    "an epoch counts what goes out in it, seed 22000644": (
        '{"seed":22000644,"participants":2,"writes":[[34815,1],[34820,1],[34820,1],[36975'
        ',1],[36975,1],[37125,1]],"faults":[],"store":null,"parameters":{"retry_interval_'
        'ms":5000,"timeout_for_lost_messages_ms":60000,"repair_buffer_size":4},"habits":{'
        '"budget":10,"epoch_s":10},"durable":[1],"publish_ms":1000}'
    ),
    # After a restart a participant compared its log from the oldest entry in memory on. Auto 178.
    "a restart does not shorten what is compared": (
        '{"seed":178,"participants":2,"writes":[[4848,0],[4853,0],[4853,0],[4853,0],[6853,0],'
        "[6858,0],[6858,0],[6858,0],[7008,0],[7158,0],[9158,0],[11158,0],[13308,0],[13458,0],"
        '[13463,0],[13468,0],[13473,0],[13478,0],[13628,0],[13633,0],[23638,0]],"faults":[{"k'
        'ind":"partition","at_ms":52691,"until_ms":1252691,"island":[1],"direction":"both"},{'
        '"kind":"crash","at_ms":117035,"until_ms":122035,"who":0}],"conditions":{"latency":[1'
        ',60000,2]},"store":null,"parameters":{"incoming_messages":20,"log_window_entries":8,'
        '"repair_buffer_size":20},"habits":{"payload_bytes":266,"segmentation":"nim-segmentat'
        'ion","segment_bytes":200},"commit_ms":2000,"durable":[0,1],"self_tuning":[0,1]}'
    ),
    "a restart does not shorten what is compared, auto 57": (
        '{"seed":57,"participants":12,"writes":[[915,11],[2915,3],[4915,11],[5065,8],[5215,4]'
        ',[5215,2],[5215,3],[5365,4]],"faults":[{"kind":"crash","at_ms":10726,"until_ms":1572'
        '6,"who":6},{"kind":"crash","at_ms":70690,"until_ms":70790,"who":7},{"kind":"crash","'
        'at_ms":79065,"until_ms":79165,"who":6},{"kind":"crash","at_ms":91632,"until_ms":6916'
        '32,"who":7},{"kind":"partition","at_ms":111025,"until_ms":1311025,"island":[1,3,5,7,'
        '8,9,10],"direction":"out"}],"conditions":{"latency":[1,1000,1],"loss":0.9},"store":n'
        'ull,"parameters":{"sync_min_interval_ms":10000,"incoming_messages":4,"log_window_ent'
        'ries":8,"repair_buffer_size":4},"habits":{"payload_bytes":800,"segmentation":"nim-se'
        'gmentation","segment_bytes":200,"repeats":0.2,"confirms":0.0,"budget":100,"epoch_s":'
        '600,"confirm_interval_ms":60000},"durable":[0,1,4,5,6,9,11],"self_tuning":[0,1,2,3,4'
        ',5,6,7,8,9,10,11],"publish_ms":1000}'
    ),
    "a restart does not shorten what is compared, auto 208": (
        '{"seed":208,"participants":4,"writes":[[52,1],[40052,3],[42052,3],[82052,0],[122052,'
        "3],[122252,0],[162252,2],[202252,1],[204252,1],[206252,2],[208252,1],[210252,1],[212"
        "252,3],[214252,0],[216252,3],[256252,0],[256452,1],[256652,2],[256852,0],[257052,0],"
        "[259052,3],[299052,0],[299252,0],[299452,1],[299652,2],[339652,1],[341652,0],[381652"
        ",0],[381852,2],[383852,0],[385852,0],[386052,0],[386252,0],[386452,3],[388452,3],[39"
        "0452,0],[430452,1],[432452,1],[472452,2],[472652,2],[472852,1],[474852,3],[514852,0]"
        ",[554852,3],[556852,1],[558852,1],[598852,0],[638852,0],[640852,0],[642852,3],[64305"
        "2,0],[645052,1],[647052,3],[649052,1],[649252,2],[649452,2],[689452,2],[691452,0],[7"
        "31452,1],[731652,0],[733652,1],[733852,1],[773852,3],[813852,3],[853852,3],[854052,3"
        "],[894052,2],[894252,2],[934252,1],[936252,2],[938252,1],[940252,0],[940452,2],[9424"
        '52,3],[982452,1],[984452,3],[986452,2],[988452,0],[990452,0],[1030452,0]],"faults":['
        '{"kind":"outage","at_ms":3438,"until_ms":1203438,"who":2},{"kind":"crash","at_ms":44'
        '0430,"until_ms":440530,"who":2},{"kind":"partition","at_ms":476110,"until_ms":716110'
        ',"island":[0,1,3],"direction":"in"},{"kind":"outage","at_ms":481164,"until_ms":16811'
        '64,"who":1},{"kind":"outage","at_ms":626471,"until_ms":866471,"who":3},{"kind":"cras'
        'h","at_ms":798225,"until_ms":799225,"who":2},{"kind":"join","at_ms":1046282,"who":3}'
        '],"conditions":{"latency":[50,20000,4],"loss":0.1,"duplication":0.2},"store":null,"p'
        'arameters":{"timeout_for_lost_messages_ms":60000,"incoming_messages":4,"log_window_e'
        'ntries":8,"repair_buffer_size":4},"habits":{"repeats":0.2,"confirms":0.9,"confirm_in'
        'terval_ms":60000},"commit_ms":3,"durable":[2,3],"self_tuning":[0,1,2,3]}'
    ),
    "a restart does not shorten what is compared, auto 301": (
        '{"seed":301,"participants":2,"writes":[[598,1],[420598,1],[422598,1],[422598,1],[424'
        "598,1],[424748,1],[844748,1],[846748,1],[1266748,1],[1306748,1],[1726748,1],[1726748"
        ",1],[1726748,1],[2146748,1],[2146748,1],[2146898,1],[2566898,1],[2606898,1],[3026898"
        ",1],[3026898,1],[3446898,1],[3447048,1],[3487048,1],[3527048,1],[3567048,1],[3569048"
        ",1],[3989048,1],[4409048,1],[4409198,1],[4411198,1],[4411348,1],[4831348,1],[4833348"
        ",1],[4835348,1],[5255348,1],[5675348,1],[6095348,1],[6135348,1],[6135498,1],[6135498"
        ',1]],"faults":[{"kind":"clock_jump","at_ms":0,"who":0,"by_ms":1000},{"kind":"clock_j'
        'ump","at_ms":0,"who":1,"by_ms":1000},{"kind":"crash","at_ms":1429716,"until_ms":1434'
        '716,"who":1},{"kind":"join","at_ms":5265334,"who":0}],"conditions":{"latency":[1,600'
        '00,2],"loss":0.9},"store":{"answer":[20,200,1]},"parameters":{"bloom_capacity":200,"'
        'max_retry_attempts":2,"timeout_for_lost_messages_ms":60000,"incoming_messages":4,"lo'
        'g_window_entries":8,"repair_buffer_size":20},"habits":{"reading_ms":2000,"confirms":'
        '0.5,"confirm_interval_ms":60000},"commit_ms":3,"durable":[1],"self_tuning":[0,1],"pu'
        'blish_ms":1000}'
    ),
    # The simulation's own: a process that ended without a state took along what its filter had held
    # by chance, so that nothing explained an acknowledgement that the other segment brought later.
    # Drawn by seed 8510024.
    "a filter that is gone has acknowledged by chance": (
        '{"seed":8510024,"participants":3,"writes":[[907,2],[1057,1],[1057,2],[3057,2],[3207,'
        "1],[3357,2],[3362,1],[3512,2],[3512,1],[3662,2],[5662,1],[5662,2],[5812,1],[5817,2],"
        "[5967,1],[6117,1],[6117,2],[6122,1],[6272,2],[8422,2],[8577,2],[10727,2],[10727,1],["
        "10732,2],[10732,1],[10732,2],[10882,1],[11032,1],[13032,2],[13032,1],[15032,1],[1703"
        "2,2],[19032,1],[19182,2],[19187,2],[31657,1],[31807,2],[31957,2],[32107,2],[32107,2]"
        ',[34262,2],[36262,1]],"faults":[{"kind":"crash","at_ms":100934,"until_ms":101034,"wh'
        'o":1}],"conditions":{"loss":0.9,"duplication":0.8},"store":null,"parameters":{"bloom'
        '_capacity":20,"timeout_for_lost_messages_ms":60000,"repair_buffer_size":4},"habits":'
        '{"payload_bytes":133,"segmentation":"nim-segmentation","segment_bytes":200,"repeats"'
        ':0.2,"confirms":0.9,"confirm_interval_ms":60000},"commit_ms":3,"durable":[2],"publis'
        'h_ms":1000}'
    ),
}
