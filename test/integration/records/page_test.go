// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/scheduling"
	"kube-scheduler-fork/test/cluster"
)

// hostile is an extender's message about a node. If a page did not escape it, its scripts would run.
const hostile = `"><script>alert(1)</script><img src=x onerror="alert(2)"><a href='javascript:alert(3)'>here</a>`

// phone is the width of a narrow screen in CSS pixels.
const phone = 360

// browser is a headless chromium.
type browser struct {
	context.Context
	server string

	mutex      sync.Mutex
	complaints []string
}

// newBrowser starts a chromium that can reach only a server. Any other request, and any error on the pages, fails the
// test.
func newBrowser(t *testing.T, server string) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("chromium is not installed; next: apt-get install chromium")
		}
		t.Skip("chromium is not installed; next: apt-get install chromium")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-domain-reliability", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
	)...)
	t.Cleanup(cancel)
	b := &browser{server: server}
	b.Context, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	err = chromedp.Listen(b, func(event any) {
		switch event := event.(type) {
		case *log.EventEntryAdded:
			b.complain("log: %s: %s", event.Entry.URL, event.Entry.Text)
		case *runtime.EventConsoleAPICalled:
			b.complain("console: %s", event.Type)
		case *runtime.EventExceptionThrown:
			b.complain("exception: %s", event.ExceptionDetails.Text)
		case *page.EventJavascriptDialogOpening:
			b.complain("a script says: %s", event.Message)
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(event.Request.URL, server+"/scheduling/") {
				b.complain("it asks for %s", event.Request.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	call(t, b, log.Enable, cdp.Empty{})
	call(t, b, network.Enable, network.EnableParams{})
	t.Cleanup(func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		for _, complaint := range b.complaints {
			t.Error(complaint)
		}
	})
	return b
}

func (b *browser) complain(format string, arguments ...any) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.complaints = append(b.complaints, fmt.Sprintf(format, arguments...))
}

// call runs a command of the browser's protocol.
func call[P, R any](t *testing.T, b *browser, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(b, command, params); err != nil {
		t.Fatal(err)
	}
}

// run runs chromedp actions.
func run[T any](t *testing.T, b *browser, action chromedp.Action[T]) T {
	t.Helper()
	value, err := chromedp.Run(b, action)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// open navigates to a page and returns its text.
func (b *browser) open(t *testing.T, path string) string {
	t.Helper()
	run(t, b, chromedp.Navigate(b.server+path))
	return b.text(t)
}

func (b *browser) text(t *testing.T) string {
	t.Helper()
	return evaluate[string](t, b, "document.body.innerText")
}

// evaluate evaluates a script in the page, even if the page's own scripts are disabled.
func evaluate[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	return run(t, b, chromedp.Evaluate[T](expression))
}

// press presses Tab until the wanted element has the focus.
func (b *browser) press(t *testing.T, want string) {
	t.Helper()
	for range 50 {
		run(t, b, chromedp.KeyEvent(kb.Tab))
		if !evaluate[bool](t, b, "document.activeElement !== null && (active => "+want+")(document.activeElement)") {
			continue
		}
		if width := evaluate[string](t, b, "getComputedStyle(document.activeElement).outlineWidth"); width != "3px" {
			t.Errorf("what has the focus (%s) has an outline of %s", want, width)
		}
		return
	}
	t.Fatalf("Tab does not come to %s", want)
}

// enter presses Enter and waits for the next page.
func (b *browser) enter(t *testing.T) {
	t.Helper()
	if _, err := chromedp.RunResponse(b, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
}

// screen sets the width of the screen and the preferred colour scheme.
func (b *browser) screen(t *testing.T, width int64, dark bool) {
	t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width == phone,
	})
	call(t, b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// photograph saves a screenshot of the whole page among the artifacts of go test -artifacts.
func (b *browser) photograph(t *testing.T, name string) {
	t.Helper()
	picture := run(t, b, chromedp.FullScreenshot(100))
	cluster.Write(t, filepath.Join(t.ArtifactDir(), name+".png"), string(picture))
}

// hostileExtender rejects all nodes for a pod named hostile.
func hostileExtender(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil || args.Pod == nil || args.NodeNames == nil {
			http.Error(w, "no pod and names of nodes", http.StatusBadRequest)
			return
		}
		result := extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}
		if args.Pod.Name == "hostile" {
			result = extenderv1.ExtenderFilterResult{NodeNames: &[]string{}, FailedNodes: extenderv1.FailedNodesMap{}}
			for _, name := range *args.NodeNames {
				result.FailedNodes[name] = hostile
			}
		}
		if err := json.NewEncoder(w).Encode(result); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf("extenders: [{urlPrefix: %q, filterVerb: filter, nodeCacheCapable: true}]\n", server.URL)
}

// TestPagesInABrowser reads the records in a browser.
func TestPagesInABrowser(t *testing.T) {
	s := newStand(t, hostileExtender(t))
	placed := localcluster.NewPod("placed", "")
	node := s.AwaitBound(t, s.CreatePod(t, placed))
	large, attacks := localcluster.NewPod("large", ""), localcluster.NewPod("hostile", "")
	large.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}
	for _, pod := range []*corev1.Pod{large, attacks} {
		s.recorded(t, s.CreatePod(t, pod), func(got record) error {
			if got.Result != "Unschedulable" {
				return fmt.Errorf("it is %s", got.Result)
			}
			return nil
		})
	}
	b := s.browse(t)
	const list = "/scheduling/pods"
	pages := map[string]string{
		"pods": list, "waits": list + "/default/large", "placed": list + "/default/placed", "hostile": list + "/default/hostile",
		"node": list + "?search=" + node, "queue": "/scheduling/queue", "what-if": "/scheduling/what-if?pod=default/large&nodes=all",
	}

	t.Run("keyboard", func(t *testing.T) {
		b.open(t, list)
		b.press(t, "active.id === 'search'")
		run(t, b, chromedp.KeyEvent("INSUFFICIENT cpu"))
		b.enter(t)
		text := b.text(t)
		if !strings.Contains(text, "1 pod found") || !strings.Contains(text, "large") || strings.Contains(text, "hostile") {
			t.Errorf("the search finds:\n%s", text)
		}
		b.press(t, "active.textContent === 'large'")
		b.enter(t)
		if heading := evaluate[string](t, b, "document.querySelector('h1').textContent"); heading != "default/large" {
			t.Errorf("Enter on the link of the pod leads to %s", heading)
		}
		b.press(t, "active.textContent === 'node-1'")
	})
	t.Run("what if", func(t *testing.T) {
		b.open(t, "/scheduling/what-if")
		b.press(t, "active.id === 'pod'")
		run(t, b, chromedp.KeyEvent("default/large"))
		b.enter(t)
		if text := b.text(t); !strings.Contains(text, "None of 4 nodes fits; 4: Insufficient cpu.") {
			t.Errorf("of a pod that waits:\n%s", text)
		}
		const manifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "draft"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}`
		b.press(t, "active.id === 'manifest'")
		run(t, b, chromedp.KeyEvent(manifest))
		b.press(t, "active.textContent === 'Ask for each node'")
		b.enter(t)
		text := b.text(t)
		for _, part := range []string{"default/draft", "4 of 4 nodes would take it.", "Each node", "fits\tscore"} {
			if !strings.Contains(text, part) {
				t.Errorf("of a pod that does not exist there is no %q:\n%s", part, text)
			}
		}
		if again := evaluate[string](t, b, "document.getElementById('manifest').value"); again != manifest {
			t.Errorf("the manifest is shown again as %s", again)
		}
	})
	t.Run("screens", func(t *testing.T) {
		for name, path := range pages {
			colours := map[string]bool{}
			for _, dark := range []bool{false, true} {
				for _, width := range []int64{phone, 1280} {
					b.screen(t, width, dark)
					b.open(t, path)
					if got := evaluate[int64](t, b, "document.documentElement.scrollWidth"); got > width {
						t.Errorf("%s is %d pixels wide on a screen of %d", name, got, width)
					}
					b.photograph(t, fmt.Sprintf("%s-%d-dark=%v", name, width, dark))
				}
				colours[evaluate[string](t, b, "getComputedStyle(document.body).backgroundColor")] = true
			}
			if len(colours) != 2 {
				t.Errorf("%s has the background %v, in the dark too", name, colours)
			}
		}
	})
	t.Run("without scripts", func(t *testing.T) {
		call(t, b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		if text := b.open(t, list); !strings.Contains(text, "None of 4 nodes fits; 4: Insufficient cpu.") {
			t.Errorf("the list:\n%s", text)
		}
	})
}

// picture is the picture of a decision in README.md and docs/why.md. UPDATE=1 make test TESTS=integration makes it again.
const picture = root + "/docs/decision.png"

// TestPictureOfADecision shows a pod that two plugins kept off nodes, and whose other nodes have different scores.
func TestPictureOfADecision(t *testing.T) {
	s := newStand(t)
	reserved := corev1.NodeSpec{Taints: []corev1.Taint{{Key: "reserved", Effect: corev1.TaintEffectNoSchedule}}}
	small := corev1.NodeStatus{Allocatable: cluster.Resources("1", "4Gi", "110")}
	s.CreateNodes(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-5"}, Spec: reserved},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-6"}, Status: small})
	for _, name := range []string{"web-0", "web-1"} {
		web := localcluster.NewPod(name, "")
		web.Labels = map[string]string{"app": "web"}
		web.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("3")
		web.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: localcluster.DiskType, Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd"},
				}},
			}}},
		}}
		web.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: web.Labels},
		}}
		s.AwaitBound(t, s.CreatePod(t, web))
	}
	b := s.browse(t)
	text := b.open(t, "/scheduling/pods/default/web-1")
	for _, part := range []string{"6 nodes in the cluster", "TaintToleration rejects 1", "NodeResourcesFit rejects 1", "4 nodes fit"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page has no %q:\n%s", part, text)
		}
	}
	if os.Getenv("UPDATE") != "" {
		// As far as the scores.
		call(t, b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 1290, DeviceScaleFactor: 1})
		cluster.Write(t, picture, string(run(t, b, chromedp.CaptureScreenshot())))
	}
}

// browse serves the pages of a reader of the records, and opens a browser for them.
func (s *stand) browse(t *testing.T) *browser {
	t.Helper()
	client, err := rest.HTTPClientFor(&rest.Config{BearerToken: s.readerToken(t), TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := scheduling.NewPages(client, s.scheduler.URL())
	if err != nil {
		t.Fatal(err)
	}
	served := httptest.NewServer(pages)
	t.Cleanup(served.Close)
	return newBrowser(t, served.URL)
}

// readerToken returns a token of an account with all permissions of manifests/examples.
func (s *stand) readerToken(t *testing.T) string {
	t.Helper()
	reader := cluster.Account{Namespace: metav1.NamespaceDefault, Name: "reader"}
	s.CreateFrom(t, root+"/manifests/examples/records/read-scheduling-records.yaml")
	s.CreateAccount(t, reader, rbacv1.RoleRef{Kind: "ClusterRole", Name: "read-scheduling-records"},
		rbacv1.RoleRef{Kind: "ClusterRole", Name: "ask-scheduling-what-if"})
	for path, verb := range map[string]string{"/scheduling/pods": "get", "/scheduling/what-if": "post"} {
		s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
			User: reader.User(), NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
		})
	}
	return s.Token(t, reader)
}
