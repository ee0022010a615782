package config

import "strings"

// renamed maps old names of keys to current ones.
var renamed = func() map[string]string {
	names := map[string]string{"seeds": "seed", "workload.sessions": "sessions.count",
		"workload.turns": "sessions.turns", "workload.system_prompts": "sessions.system_prompts",
		"workload.system_lengths": "sessions.system_lengths",
		"workload.system_zipf":    "sessions.system_zipf", "workload.datasets": "longbench.datasets",
		"workload.output": "longbench.output", "scores.error": "estimates.cuboid_mean",
		"scores.min_max_error": "estimates.min_max", "scores.mean_error": "estimates.mean",
		"scores.representative_error": "estimates.representative",
		"scores.speculation_error":    "estimates.speculation"}
	for table, keys := range map[string]string{
		"selection": "attention=on selection=policy budget_tokens sink_blocks " +
			"window_blocks=recent_blocks " +
			"dense_layers selections=recording select_per=per epsilon microbatch pipelined psa_stop=stop " +
			"margin",
		"offload": "offload=on load_engine=load save_engine=save lookup hot_buffer hot_release " +
			"host_pool_ratio eviction pool save_buffer_mib batch_control window=working_set_steps",
		"prefill": "prefill=split prefill_attention=attention prefill_pattern=pattern " +
			"prefill_sink=sink_tokens prefill_window=recent_tokens prefill_vertical=vertical " +
			"prefill_slash=slash prefill_blocks=blocks chunk_tokens max_inject over_length " +
			"max_prompt_tokens",
		"prefix_cache": "prefix_cache=mode prefix_dram_gib=dram_gib prefix_ssd_gib=ssd_gib " +
			"prefix_drive=drive prefix_chunk=chunk prefix_eviction=eviction prefix_write=write " +
			"prefix_write_hits=write_hits prefix_load=load prefix_load_tokens=load_tokens " +
			"prefix_overlap=overlap prefix_attention=attend load_weight",
		"speculation": "speculate_tokens=tokens acceptance",
		"simulation":  "heads sample_groups=groups",
		"system":      "base=scheduler",
	} {
		for word := range strings.FieldsSeq(keys) {
			old, now, other := strings.Cut(word, "=")
			if !other {
				now = old
			}
			names["system."+old] = table + "." + now
		}
	}
	return names
}()

// renamedKey is the error of a key at path by a name that it had before; nil if it had none.
func renamedKey(path, key string) error {
	now := renamed[path]
	if now == "" && (strings.HasPrefix(path, "system.") || strings.HasPrefix(path, "systems[")) {
		now = renamed["system."+key]
	}
	switch {
	case now == "":
		return nil
	case now == "selection.on":
		now += ", true for \"sparse\","
	}
	return &KeyError{Key: path, Reason: "is " + now + " now"}
}
