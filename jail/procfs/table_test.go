package procfs

import (
	"slices"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	for table, rows := range map[string][]Entry{"RootEntries": RootEntries, "Sysctls": Sysctls, "NetEntries": NetEntries} {
		for _, r := range rows {
			if r.Name == "" || len(r.Reason) < 4 {
				t.Errorf("%s: %+v lacks a name or a reason", table, r)
			}
			if strings.HasPrefix(r.Name, "/") || strings.Contains(r.Name, "/") && table != "Sysctls" {
				t.Errorf("%s: %s is not a name in the folder", table, r.Name)
			}
			if r.Source != Kernel && table == "NetEntries" {
				t.Errorf("%s: %+v", table, r)
			}
		}
		names := func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }
		if !slices.IsSortedFunc(rows, names) || len(slices.CompactFunc(slices.Clone(rows), func(a, b Entry) bool { return a.Name == b.Name })) < len(rows) {
			t.Errorf("%s is not sorted, or lists an entry twice", table)
		}
	}
}
