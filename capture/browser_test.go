//go:build conformance

package capture

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHostileBrowser: what Chromium makes of the page of a hostile recording is the text
// of the recording, in the elements that the page is made of, and nothing runs.
func TestHostileBrowser(t *testing.T) {
	p := hostilePane(t)
	p.write([]byte("<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">\r\n"))
	page, _ := exported(t, p, ExportRequest{Pane: "p1", Format: "html", Header: CastHeader{Command: "<b onclick=alert(1)>"}})
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	dom, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=1000", "--dump-dom", "file://"+file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(dom), "<title>p1: &lt;b onclick=alert(1)&gt;</title>") {
		t.Errorf("the title is another: %.600s", dom)
	}
	_, body, _ := strings.Cut(string(dom), "</style>")
	tag := regexp.MustCompile(`<[^<>]*>`)
	for _, element := range tag.FindAllString(body, -1) {
		name := strings.Trim(strings.Fields(element)[0], "</>")
		if !strings.Contains(" head body html h1 pre i b span a ", " "+name+" ") || strings.Contains(element, " on") {
			t.Errorf("it has %s", element)
		}
	}
	_, shown, _ := strings.Cut(body, `<pre dir="ltr">`)
	shown, _, _ = strings.Cut(shown, "</pre>")
	_, sent, _ := strings.Cut(page, "<pre dir=\"ltr\">\n")
	sent, _, _ = strings.Cut(sent, "</pre>")
	text := func(s string) string {
		return strings.TrimLeft(html.UnescapeString(tag.ReplaceAllString(s, "")), "\n")
	}
	if text(shown) != text(sent) {
		t.Errorf("it shows\n%s\nand not\n%s", text(shown), text(sent))
	}
}
