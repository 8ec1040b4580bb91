"""What `cargo xtask bench rivals` keeps of results of `earmark bench --json`, by setting.

With the argument `tails`, for `cargo xtask bench suspension`: the slowest requests, too, and packets that
programs took by polls of their own.
"""

import json
import sys

text, decoder, kept = sys.stdin.read(), json.JSONDecoder(), {}
while text.strip():
    document, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    for result in document["results"]:
        latency, served = result["latency_us"], result["ports"][1].get("processor")
        kept[result["setting"].removeprefix("disabled, ")] = figures = {
            "p50_us": latency["p50"],
            "p99_us": latency["p99"],
            "interrupts_per_s": result["interrupts_per_s"],
            "answers_per_s": result["transactions_per_s"],
        }
        # Guests without costs have no such figure.
        if served:
            figures["busy_cores_b"] = served["processors"] * (1 - served["idle"])
        if sys.argv[1:] == ["tails"]:
            figures |= {"p999_us": latency["p999"], "max_us": latency["max"]}
            if result.get("busy_polled") is not None:
                figures["busy_polled"] = result["busy_polled"] / max(1, result["packets"])
json.dump(kept, sys.stdout)
