package traces

import (
	"github.com/sparseserve/sparseserve/traces/rows"
)

// speaker is the author of a message.
type speaker int

const (
	nobody speaker = iota
	user
	model
	system // also tools
)

var speakers = map[string]speaker{
	"human": user, "user": user, "gpt": model, "assistant": model, "chatgpt": model, "bing": model,
	"bard": model, "model": model, "system": system, "developer": system, "tool": system,
	"function": system,
}

// readMessages reads messages of conversations, in ShareGPT's style or in that of vLLM's multi-turn
// benchmark:
//
//	{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
//	{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}, …]}
//
// A text may be a list of parts, as in requests to OpenAI. Each answer to a user is a turn; its
// prompt is all messages before it. Equal texts are equal content. Messages without text are
// skipped. Messages without an answer, and answers without a user message, are part of later
// prompts. No chat template is added.
func readMessages(o *options) func(rows.Record, *row) error {
	count := newTokenCounter(o.tokenizer)
	session, next := "", row{} // the conversation, and its next turn so far
	question := false          // next has a message of a user
	return func(rec rows.Record, r *row) error {
		if r.Session != session {
			session, next, question = r.Session, row{}, false
		}
		r.skip = part
		_, name := rows.Find(rec, "from|role")
		who := speakers[name]
		if who == nobody {
			return rows.Wrong("from", name, "whose is it? use human, gpt or system, or user, assistant "+
				"or tool")
		}
		key, _ := rows.Find(rec, "value|content")
		text, image, err := textOf(rec.(*rows.Object), key)
		if err != nil {
			return err
		}
		said, n, err := count.piece(key, who, text)
		next.image = next.image || image || r.image
		switch {
		case err != nil:
			return err
		case n == 0:
		case who == model && question:
			r.skip, r.asked, r.image, r.pause = keep, next.asked, next.image, -1
			r.Output, r.answer = n, said[0].ID
			next, question = row{}, false
		default:
			next.asked = append(next.asked, said...)
			question = question || who == user
		}
		return nil
	}
}

// textOf returns a text, or the texts of a list of parts, and whether a part has none, as an image.
func textOf(o *rows.Object, key string) (text string, image bool, err error) {
	raw := o.Value(key)
	switch raw.Kind() {
	case '"':
		return rows.TextOf(raw), false, nil
	case '[':
		err = o.Each(key, func(part *rows.Object) error {
			more, _, err := textOf(part, "text")
			text, image = text+more, image || more == ""
			return err
		})
		return text, image, err
	case 'n', 0:
		return "", false, nil
	}
	return "", false, rows.Wrong(key, string(raw), "not a text")
}
