"""Per function and class of repeat: how many instances, different texts of commands and pieces there are."""
import re
import sys
from collections import defaultdict

texts = defaultdict(lambda: defaultdict(list))
pieces = defaultdict(int)
function, last = None, None
for line in open(sys.argv[1], encoding="utf-8"):
    start = re.match(r" +func.func @(\w+)\(", line)
    if start:
        function, last = start.group(1), None
        continue
    command = re.search(r"sched\.(launch|record|wait).*", line)
    if not command:
        continue
    repeat = re.search(r'plan\.repeat = #plan\.repeat<"([^"]*)", (\d+)>', line)
    key = repeat and (function, repeat.group(1))
    instance = repeat and (key, int(repeat.group(2)))
    if repeat:
        pieces[key] += instance != last
        text = re.sub(r"\{[^{}]*plan\.repeat[^{}]*\}", "", command.group(0))
        texts[key][instance[1]].append(re.sub(r"%\d+", "%", text))
    last = instance

for key, instances in texts.items():
    different = len({tuple(text) for text in instances.values()})
    print(f"{key[0]} {key[1]}: {len(instances)} instances, {different} text{'s' if different > 1 else ''}, {pieces[key]} pieces")
