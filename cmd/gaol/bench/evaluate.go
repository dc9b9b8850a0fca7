package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gaol/runtime"
)

// evaluations compares Evaluate to Run of the same code.
func (m *measurer) evaluations(ctx context.Context) error {
	const code = "const list = Array.from({ length: 1000 }, (_, i) => i * i);\nconsole.log(list.length);\n"
	evaluate := func(side Side) error {
		e, err := m.lasting[side].Evaluate(ctx, code+"list.at(-1)", runtime.EvaluateOptions{})
		if err == nil && string(e.Result) != "998001" {
			err = fmt.Errorf("evaluate: the result is %s: %w", e.Result, errors.Join(e.Decode(new(any))))
		}
		return err
	}
	plain := func(side Side) error {
		res, err := m.lasting[side].Run(ctx, code+"__return(list.at(-1))", runtime.RunOptions{})
		if err == nil && string(res.Value) != "998001" {
			err = fmt.Errorf("run: %s: %.300s", res.Value, res.Stderr)
		}
		return err
	}
	if err := m.turns(ctx, 1, m.jailed(), evaluate); err != nil { // not measured: its limit of the heap takes a Node of its own
		return err
	}
	evaluated, ran, err := m.pairs(ctx, m.options.fewer(1), timed(evaluate), timed(plain))
	if err == nil {
		m.add(againstOwn(evaluateID, "Evaluate, p50", "ms", evaluated.percentiles(50), ran.percentiles(50), "Run of the same"))
	}
	return err
}

// normalizations measures how long it takes to turn a snippet of TypeScript into a program.
// The host does that before it starts a process, so it is the same for all launchers.
func (m *measurer) normalizations(context.Context) error {
	code := typedSnippet(20 << 10)
	var times Series
	for range m.options.fewer(2) {
		if err := times.time(func() error { _, err := runtime.Normalize(code); return err }); err != nil {
			return err
		}
	}
	v := Values{}
	for _, side := range m.jailed() {
		v[side] = times.Percentile(50)
	}
	m.add(alone(normalizeID, "Normalize of 20 KB of TypeScript, p50", "ms", v))
	return nil
}

// typedSnippet returns TypeScript as models write it, of at least size bytes, in
// Markdown's fences.
func typedSnippet(size int) string {
	var text strings.Builder
	text.WriteString("Here is the code:\n\n```ts\n")
	for i := 0; text.Len() < size; i++ {
		fmt.Fprintf(&text, `interface Order%[1]d { id: number; lines: Array<{ sku: string; count?: number }>; note: string | null }

// Adds up the orders of one article.
function total%[1]d<T extends Order%[1]d>(orders: readonly T[], sku: string): number {
  const counts: Map<string, number> = new Map();
  for (const { lines } of orders) {
    for (const line of lines.filter((l) => l.sku === sku)) counts.set(line.sku, (counts.get(line.sku) ?? 0) + (line.count ?? 1));
  }
  return counts.get(sku) ?? 0;
}

const result%[1]d = total%[1]d([{ id: %[1]d, lines: [{ sku: 'a', count: 2 }, { sku: 'b' }], note: null }] as Order%[1]d[], 'a');
console.log(`+"`total ${result%[1]d}`"+`);

`, i)
	}
	text.WriteString("({ result0, done: true as boolean })\n```\n")
	return text.String()
}
