package npm

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/test/harness"
)

// checkedExamples is how many examples BenchmarkSnippetCheck checks.
const checkedExamples = 100

// exampleText is an example of a framework. %d makes each one different.
const exampleText = `import { createModule, createSystem } from "@directive-run/core";

interface Item {
  name: string;
  price: number;
}

interface Facts {
  items: Item[];
}

const cart = createModule("cart", {
  init: (facts: Facts) => {
    facts.items = [];
  },
  derive: {
    total: (facts: Facts): number => facts.items.reduce((sum, { price }) => sum + price, 0),
  },
});

const system = createSystem({ module: cart });
system.start();
system.facts.items = [{ name: "pen", price: %d }, { name: "ink", price: 9 }];
await system.settle();
console.log("total", system.derive.total);
`

// BenchmarkSnippetCheck compares a check of 100 examples with a loop that runs them in worker threads of the caller's
// process. They take turns.
func BenchmarkSnippetCheck(b *testing.B) {
	packages, err := filepath.Abs(cmp.Or(os.Getenv(packagesVar), stubs))
	if err != nil {
		b.Fatal(err)
	}
	folder := b.TempDir()
	for i := range checkedExamples {
		text := fmt.Sprintf(exampleText, i)
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("e%d.ts", i)), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	inProcess := startInProcess(b, packages)
	args := []string{"snippet", "check", "--adapter", "directive", "--node-modules", packages, folder}
	medians := takeTurns(b,
		func() (time.Duration, error) { return inProcess.measure("loop " + folder) },
		func() (time.Duration, error) { return measureCheck(b, args) })
	for i, side := range []string{"in-process", "check"} {
		b.ReportMetric(float64(medians[i].Milliseconds()), side+"-ms")
		if i > 0 {
			b.ReportMetric(float64(medians[i])/float64(medians[0]), side+"-ratio")
		}
	}
}

// measureCheck measures a check, including gaol's start.
func measureCheck(b *testing.B, args []string) (time.Duration, error) {
	b.Helper()
	c := exec.CommandContext(b.Context(), harness.Gaol(b), args...)
	start := time.Now()
	out, err := c.CombinedOutput()
	took := time.Since(start)
	if err != nil || !strings.Contains(string(out), "100 passed, ") {
		err = fmt.Errorf("gaol %v: %v\n%s", args, err, out)
	}
	return took, err
}
