package traces

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Tokens per block in published traces: 512 of Mooncake, 16 of Qwen-Bailian, 64 of Dynamo.
const leastBlock, mostBlock = 8, 4096

// readHashIDs makes content of Mooncake's hash_ids, an id per block of a prompt; the last block may
// be shorter, or have no id. Outputs have no ids; if a later prompt contains an output, the ids of
// the prompt cover it. The first prompt of several blocks gives their tokens.
func readHashIDs(*options) func(rows.Record, *row) error {
	size := 0 // tokens of a block; 0: not known yet
	return func(rec rows.Record, r *row) error {
		text := rec.Text("hash_ids")
		if text == "" || text == "[]" {
			return nil
		}
		ids, ok := wholeNumbers(text)
		if !ok {
			return rows.Wrong("hash_ids", text, "not a list of whole numbers from 0")
		}
		if size == 0 && len(ids) > 1 {
			size = blockOf(len(ids), r.Prompt)
		}
		block := size
		if block == 0 { // of one id alone, a block as long as the prompt has the same hits
			block = min(r.Prompt, mostBlock)
		}
		want := (r.Prompt + block - 1) / block
		if n := len(ids); n != want && (size == 0 || n != r.Prompt/size) {
			return rows.Wrong("hash_ids", text, fmt.Sprintf("%s, but input_length = %d is %s of %d tokens, "+
				"the size by the first prompt of several blocks; the last one may be shorter",
				rows.Plural(n, "id"), r.Prompt, rows.Plural(want, "block"), block))
		}
		r.Content = blocksOf(ids, block, r.Prompt)
		return nil
	}
}

// wholeNumbers reads [1, 2, 3]. It does not use encoding/json, which has checked the whole row
// already, because most of a trace's text is such lists.
func wholeNumbers(list string) (ids []uint64, ok bool) {
	inner, opened := strings.CutPrefix(list, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	ids = make([]uint64, 0, strings.Count(inner, ",")+1)
	for text := range strings.SplitSeq(inner, ",") {
		id, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, opened && closed
}

// blocksOf makes a piece of each id; the last block may be shorter.
func blocksOf(ids []uint64, block, prompt int) *prefix.Content {
	c := &prefix.Content{Prompt: make([]prefix.Piece, len(ids))}
	for i, id := range ids {
		c.Prompt[i] = prefix.Piece{ID: id + 1, Tokens: min(block, prompt-i*block)}
	}
	return c
}

// blockOf returns the power of two of tokens per block with which a prompt has n blocks, n above 1,
// the last one shorter or, if no power of two fits, without an id. It is 512, as in Mooncake, if
// neither fits.
func blockOf(n, prompt int) int {
	for _, short := range []int{1, 0} { // blocks of the rest of a prompt
		for block := leastBlock; block <= mostBlock; block *= 2 {
			if (prompt+short*(block-1))/block == n {
				return block
			}
		}
	}
	return 512
}

// readChats reads hash_ids and the conversation of a chat that continues parent_chat_id; a parent
// that was not read begins one.
func readChats(o *options) func(rows.Record, *row) error {
	hashes, roots := readHashIDs(o), map[string]string{}
	return func(rec rows.Record, r *row) error {
		if chat := rec.Text("chat_id"); chat != "" && r.Session == "" {
			if r.Session = roots[rec.Text("parent_chat_id")]; r.Session == "" {
				r.Session = "chat" + chat
			}
			roots[chat] = r.Session
		}
		return hashes(rec, r)
	}
}

// readReplay reads the hashes of a Dynamo request's blocks, of which each stands for its block and
// all before it; the last block may be shorter, or have no hash.
func readReplay(*options) func(rows.Record, *row) error {
	size, known := 0, map[string]uint64{} // tokens of a block; ids by hash, from 0
	return func(rec rows.Record, r *row) error {
		replay, text := rows.Find(rec, "event.request.replay|request.replay")
		if text == "" {
			return nil
		}
		field := rec.Text(replay + ".trace_block_size")
		block, err := rows.Tokens("trace_block_size", field, 1)
		hashes := rec.List(replay + ".input_sequence_hashes")
		switch {
		case err != nil:
			return err
		case block > mostBlock:
			return rows.Wrong("trace_block_size", field, fmt.Sprintf("want 1 to %d tokens", mostBlock))
		case size > 0 && block != size:
			return rows.Wrong("trace_block_size", field, fmt.Sprintf("was %d above; the blocks of a trace "+
				"have one size, because hashes of others are never equal", size))
		case len(hashes) != r.Prompt/block && len(hashes) != (r.Prompt+block-1)/block:
			return rows.Wrong("input_sequence_hashes", fmt.Sprint(len(hashes)), fmt.Sprintf("a prompt "+
				"of %s has %s of %d", rows.Plural(r.Prompt, "token"),
				rows.Plural((r.Prompt+block-1)/block, "block"), block))
		}
		size = block
		ids := make([]uint64, len(hashes))
		for i, hash := range hashes {
			id, ok := known[string(hash)]
			if !ok {
				id = uint64(len(known))
				known[string(hash)] = id
			}
			ids[i] = id
		}
		r.Content = blocksOf(ids, block, r.Prompt)
		return nil
	}
}

// readTokenIDs makes pieces of LLMServingSim's tokens, which share their id with equal tokens.
func readTokenIDs(*options) func(rows.Record, *row) error {
	return func(rec rows.Record, r *row) error {
		text := rec.Text("input_tok_ids")
		if text == "" {
			return nil
		}
		var ids []int64
		if err := json.Unmarshal([]byte(text), &ids); err != nil {
			return rows.Wrong("input_tok_ids", text, "not a list of whole numbers")
		}
		if len(ids) == 0 {
			return nil
		}
		r.Content = &prefix.Content{}
		for chunk := range slices.Chunk(ids[:min(len(ids), r.Prompt)], leastBlock) {
			h := fnv.New64a()
			for _, id := range chunk {
				h.Write(binary.LittleEndian.AppendUint64(nil, uint64(id)))
			}
			r.Content.Prompt = append(r.Content.Prompt, prefix.Piece{ID: max(1, h.Sum64()),
				Tokens: len(chunk)})
		}
		return nil
	}
}
