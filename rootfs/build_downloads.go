package rootfs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"gaol/rootfs/npm"
)

// Sizes of downloads in MB, for the line that announces them. They were measured for the
// default versions in November 2026; those of other versions are similar. A test compares
// them with the downloads of the default image.
const (
	nodeSize     = 53
	npmSize      = 3
	packagesSize = 40 // including apt's package lists
	withSize     = 7  // of each package that BuildOptions.With adds
)

// announceDownloads writes one line that says what the build downloads, from where, how large it
// is, and where it is kept. It writes nothing if the store has all of it.
func (b *build) announceDownloads(context.Context) error {
	var parts []string
	if part := b.missingFromRegistry(); part != "" {
		parts = append(parts, part)
	}
	if part := b.missingFromApt(); part != "" {
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		b.report.Line("%sdownload %s, to %s", b.why, strings.Join(parts, ", and "), b.store.downloads())
	}
	return nil
}

// missingFromRegistry says which npm packages are not among the store's downloads, "" for none.
func (b *build) missingFromRegistry() string {
	var names []string
	size := 0
	for _, p := range []struct {
		name string
		npm.Package
		size int
	}{{"Node", b.plan.node, nodeSize}, {"npm", b.plan.npm, npmSize}} {
		if !exists(filepath.Join(b.store.downloads(), p.Integrity)) {
			names = append(names, p.name+" "+p.Version)
			size += p.size
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%s from the npm registry (about %d MB)", strings.Join(names, " and "), size)
}

// missingFromApt says which Debian packages the build downloads. Which of them are newer than those
// among the downloads is known only after the package lists have been downloaded.
func (b *build) missingFromApt() string {
	if b.plan.packages == nil {
		return ""
	}
	const sources = "from this machine's apt sources"
	if kept, err := filepath.Glob(filepath.Join(b.store.downloads(), "apt", "packages", "*.deb")); err == nil && len(kept) > 0 {
		return "new or updated Debian packages " + sources
	}
	return fmt.Sprintf("Debian packages %s (about %d MB)", sources, packagesSize+withSize*(len(b.plan.packages)-len(b.store.in.packages)))
}
