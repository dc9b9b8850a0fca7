package snippet

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// program20K returns a program of about 20 KB as a model writes it, in TypeScript or
// without its types.
func program20K(typed bool) string {
	var b strings.Builder
	b.WriteString("import { createHash } from 'node:crypto';\n")
	for i := 0; b.Len() < 20<<10; i++ {
		fmt.Fprintf(&b, `
interface Order%[1]d { id: string; lines: Array<{ sku: string; price: number; count: number }>; note?: string }

/** totals sums up the orders of one customer. */
async function totals%[1]d(orders: Order%[1]d[], rate: number = 0.19): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const { id, lines, note } of orders) {
    if (!lines.length || note?.startsWith('cancelled')) continue;
    const net = lines.reduce((sum: number, { price, count }) => sum + price * count, 0);
    sums.set(id, (sums.get(id) ?? 0) + Math.round(net * (1 + rate) * 100) / 100);
  }
  const digest = createHash('sha256').update(JSON.stringify([...sums])).digest('hex');
  return digest.length > 0 ? sums : (new Map() as Map<string, number>);
}
`, i)
	}
	b.WriteString("[...await totals0([{ id: 'a', lines: [{ sku: 'x', price: 10, count: 2 }] }])]\n")
	code := b.String()
	if typed {
		return code
	}
	var b2 strings.Builder
	for line := range strings.Lines(code) {
		if !strings.HasPrefix(line, "interface") {
			b2.WriteString(line)
		}
	}
	return regexp.MustCompile(`: (number|Order\d+\[\]|Promise<.*?>>)|<string, number>| as Map`).ReplaceAllString(b2.String(), "")
}

func BenchmarkModule(b *testing.B) {
	for _, bc := range []struct {
		name, code string
	}{
		{"TypeScript", program20K(true)},
		{"JavaScript", program20K(false)},
		{"Markdown", fenced("ts", program20K(true))},
		{"Expression", "1 + 1"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(len(bc.code)))
			for b.Loop() {
				if _, err := Module(bc.code); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
