package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"gaol/runtime"
)

// order is the data of the shop's functions. NewFunction derives the JSON Schema from the
// tags. The model sees the schema, and its calls are validated against it.
type order struct {
	ID     int     `json:"id"`
	Status string  `json:"status"`
	Total  float64 `json:"total"`
}

type search struct {
	Status string `json:"status" jsonschema:"open or paid"`
}

var orders = []order{{1, "open", 12.5}, {2, "paid", 99}, {3, "open", 7.25}}

// shop returns the host's functions for the code of a model.
func shop() map[string]runtime.Function {
	return map[string]runtime.Function{
		"find": runtime.NewFunction("finds orders by their status", func(_ context.Context, s search) ([]order, error) {
			var found []order
			for _, o := range orders {
				if o.Status == s.Status {
					found = append(found, o)
				}
			}
			return found, nil
		}),
		"refund": runtime.NewFunction("pays an order back", func(_ context.Context, id int) (string, error) {
			return "", &runtime.CallError{Code: "E_FORBIDDEN", Message: fmt.Sprintf("order %d: refunds need a person's approval", id)}
		}),
	}
}

// message is one message of the conversation.
type message struct{ role, text string }

// maxTurns limits a conversation that makes no progress.
const maxTurns = 8

// answer asks the model a question, and evaluates its code until it replies in words.
func answer(ctx context.Context, rt *runtime.NodeRuntime, question string) (string, error) {
	functions := shop()
	talk := []message{{"system", instructions(functions)}, {"user", question}}
	for range maxTurns {
		reply := ask(talk)
		talk = append(talk, message{"assistant", reply})
		if !strings.Contains(reply, "```") {
			return reply, nil
		}
		// The model may be wrong, or misled by what it has read. Its code can reach only
		// this jail and these functions.
		e, err := rt.Evaluate(ctx, reply, runtime.EvaluateOptions{Globals: globals(functions)})
		if err != nil {
			return "", err // gaol failed, and the model cannot correct that
		}
		talk = append(talk, message{"tool", report(e)})
		fmt.Printf("--- code\n%s\n--- result\n%s\n", reply, report(e))
	}
	return "", errors.New("the model came to no answer")
}

func globals(functions map[string]runtime.Function) map[string]any {
	members := map[string]any{}
	for name, f := range functions {
		members[name] = f
	}
	return map[string]any{"shop": members}
}

// instructions describe the functions to the model.
func instructions(functions map[string]runtime.Function) string {
	var text strings.Builder
	text.WriteString("Answer with a block of JavaScript to have it run, or in words when you are done. Functions:\n")
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		fmt.Fprintf(&text, "shop.%s: %s; arguments: %s\n", name, functions[name].Description, functions[name].Schema)
	}
	return text.String()
}

// report is the result that the model sees: what its code printed, and the value or the
// error with its place.
func report(e *runtime.Evaluation) string {
	var text strings.Builder
	for _, l := range e.Logs {
		fmt.Fprintf(&text, "%s: %s\n", l.Level, l.Text)
	}
	switch {
	case e.Error != nil:
		fmt.Fprintf(&text, "error: %v\n%s", e.Error, e.Error.Frame)
	case e.Result == nil:
		text.WriteString("no value " + e.NoResult)
	default:
		fmt.Fprintf(&text, "value: %s", e.Result)
	}
	return text.String()
}

// script lists the model's replies, in order.
var script = []string{
	"I'll add up the open orders.\n\n```ts\nconst open: { total: number }[] = shop.find({ status: 'open' });\nconsole.log(open.length, 'open');\nopen.reduce((sum, o) => sum + o.totals, 0)\n```",
	"The field is called total.\n\n```js\nconst open = shop.find({ state: 'open' });\nopen.reduce((sum, o) => sum + o.total, 0)\n```",
	"The argument is called status.\n\n```js\nasync () => {\n  const open = shop.find({ status: 'open' });\n  return { sum: open.reduce((sum, o) => sum + o.total, 0), list: open.map(o => o.id) };\n}\n```",
	"```js\ntry { shop.refund(3) } catch (err) { err.message }\n```",
	"Orders 1 and 3 are open, 19.75 in all. Refunds need a person's approval.",
}

// ask replaces a request to a model. It returns the next reply of script.
func ask(talk []message) string {
	asked := 0
	for _, m := range talk {
		if m.role == "assistant" {
			asked++
		}
	}
	return script[asked]
}

func main() {
	if err := converse(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// converse answers one question. The arguments are options of the sandbox as JSON, or
// none.
func converse(ctx context.Context, args []string) (failed error) {
	var o runtime.Options
	if len(args) > 0 {
		if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
			return err
		}
	}
	rt, err := runtime.Create(ctx, o)
	if err != nil {
		return err
	}
	defer func() { failed = errors.Join(failed, rt.Close(), runtime.CloseIdle()) }()
	text, err := answer(ctx, rt, "Which orders are open, and can you refund the last one?")
	if err == nil {
		fmt.Println("--- answer\n" + text)
	}
	return err
}
