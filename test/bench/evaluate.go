package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gaol/cmd/gaol/bench"
	"gaol/runtime"
)

// evaluations compares Evaluate to Run of the same code.
func (x *fixtures) evaluations(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	const code = "const list = Array.from({ length: 1000 }, (_, i) => i * i);\nconsole.log(list.length);\n"
	evaluate := func(side bench.Side) error {
		e, err := m.Lasting[side].Evaluate(ctx, code+"list.at(-1)", runtime.EvaluateOptions{})
		if err == nil && string(e.Value) != "998001" {
			err = fmt.Errorf("evaluate: the result is %s: %w", e.Value, errors.Join(e.Decode(new(any))))
		}
		return err
	}
	plain := func(side bench.Side) error {
		res, err := m.Lasting[side].Run(ctx, code+"__return(list.at(-1))", runtime.RunOptions{})
		if err == nil && string(res.Value) != "998001" {
			err = fmt.Errorf("run: %s: %.300s", res.Value, res.Stderr)
		}
		return err
	}
	if err := bench.Turns(ctx, 1, m.Options.Jailed, evaluate); err != nil { // not measured: its limit of the heap takes a separate Node
		return nil, nil, err
	}
	return compared(ctx, m.Options.Samples, m, bench.Timed(evaluate), bench.Timed(plain))
}

// normalizations measures how long it takes to turn a snippet of TypeScript into a program.
// The host does that before it starts a process: no launcher takes part.
func (x *fixtures) normalizations(ctx context.Context, m *bench.Measurer) (s, base bench.Samples, err error) {
	code := typedSnippet(20 << 10)
	return bench.Sample(ctx, m.Options.Fewer(2), m.Options.Jailed, bench.Timed(func(bench.Side) error {
		_, err := runtime.Normalize(code)
		return err
	}))
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
