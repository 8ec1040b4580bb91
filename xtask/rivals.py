"""What `cargo xtask bench rivals` keeps of results of `earmark bench --json`, by setting."""

import json
import sys

text, decoder, kept = sys.stdin.read(), json.JSONDecoder(), {}
while text.strip():
    document, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    for result in document["results"]:
        latency, served = result["latency_us"], result["ports"][1]["processor"]
        kept[result["setting"].removeprefix("disabled, ")] = {
            "p50_us": latency["p50"],
            "p99_us": latency["p99"],
            "interrupts_per_s": result["interrupts_per_s"],
            "busy_cores_b": served["processors"] * (1 - served["idle"]),
            "answers_per_s": result["transactions_per_s"],
        }
json.dump(kept, sys.stdout)
