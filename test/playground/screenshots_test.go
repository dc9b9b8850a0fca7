package playground

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// maxPicture bounds a picture of the documentation, in bytes.
const maxPicture = 200_000

// takeScreenshots takes the pictures of the documentation.
func takeScreenshots(t *testing.T, w *world, dir string) {
	for name, shot := range map[string]struct {
		width, height int64
		scheme        string
	}{
		"playground-light": {1200, 720, "light"}, "playground-dark": {1200, 720, "dark"}, "playground-phone": {390, 844, "light"},
	} {
		p := w.openTab(t)
		p.do(chromedp.EmulateViewport(shot.width, shot.height))
		p.setScheme(shot.scheme)
		p.visit(w.url)
		p.choose("directive")
		p.run(counter, "works")
		p.do(chromedp.Blur(chromedp.CSS(".cm-content")))
		picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if len(picture) > maxPicture {
			t.Errorf("%s has %d bytes", name, len(picture))
		}
		if err := os.WriteFile(filepath.Join("../..", dir, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
