// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	kubernetesyaml "sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/nextstep"
)

// update writes the results into testdata, to be reviewed before a commit: UPDATE=1 go test ./swap/manifest
var update = os.Getenv("UPDATE") != ""

var (
	// Without quotes, YAML would read this SHA-256 as a number.
	withConfig = Swap{
		Image:        "example.com/kube-scheduler:v1.23.17_swap.0123456789ab",
		ConfigFolder: "/var/lib/kube-scheduler-swap/configs/123456789012",
		ConfigSHA256: "1234567890123456789012345678901234567890123456789012345678901e10",
		Version:      "v1.23.17+swap.0123456789ab",
		RestartedAt:  time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC),
	}
	imageOnly = Swap{
		Image:       "example.com/kube-scheduler:v1.23.17_swap.0123456789ab",
		Version:     "v1.23.17+swap.0123456789ab",
		RestartedAt: time.Date(2024, 2, 29, 12, 0, 0, 5, time.UTC),
	}
)

// asKubeadmWrites are the scenarios in kubeadm's format. The others were edited by hand.
var asKubeadmWrites = map[string]bool{"kubeadm": true, "image-only": true, "hardened-non-root": true}

type scenario struct {
	name          string
	before, after []byte
	swap          Swap
}

func scenarios(t testing.TB) []scenario {
	t.Helper()
	folders, err := filepath.Glob("testdata/*/before.yaml")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	var all []scenario
	for _, file := range folders {
		s := scenario{name: filepath.Base(filepath.Dir(file)), before: readFile(t, file), swap: withConfig}
		if strings.HasPrefix(s.name, "image-only") {
			s.swap = imageOnly
		}
		s.swap.Hardened, s.swap.NonRoot = strings.HasPrefix(s.name, "hardened"), s.name == "hardened-non-root"
		if after := filepath.Join(filepath.Dir(file), "after.yaml"); !update {
			s.after = readFile(t, after)
		}
		all = append(all, s)
	}
	return all
}

func readFile(t testing.TB, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestApplyGivesExactlyTheExpectedText(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			got := apply(t, s.before, s.swap)
			if asKubeadmWrites[s.name] && got.Reformatted {
				t.Error("kubeadm's manifest is reformatted")
			}
			if update {
				if err := os.WriteFile(filepath.Join("testdata", s.name, "after.yaml"), got.Manifest, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if change := Diff("after.yaml", s.after, "result", got.Manifest); change != nil {
				t.Errorf("the result is not after.yaml:\n%s", change)
			}
		})
	}
}

func apply(t testing.TB, manifest []byte, swap Swap) Edit {
	t.Helper()
	edited, err := Apply(manifest, swap)
	if err != nil {
		t.Fatalf("Apply: %v\n%s", err, manifest)
	}
	return edited
}

func TestASwapReplacesAnEarlierOne(t *testing.T) {
	next := withConfig
	next.Image, next.Version = "example.com/kube-scheduler:next", "v1.23.17+next.000000000000"
	next.ConfigFolder = "/var/lib/kube-scheduler-swap/configs/ffffffffffff"
	next.ConfigSHA256 = strings.Repeat("f", 64)
	next.RestartedAt = withConfig.RestartedAt.Add(time.Hour)
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			over := func(manifest []byte, swap Swap, empty ...string) []byte {
				t.Helper()
				edited := apply(t, manifest, swap)
				if edited.Reformatted {
					t.Error("a manifest that a swap has written is reformatted")
				}
				got, want := without(t, edited.Manifest, empty...), without(t, apply(t, s.before, swap).Manifest, empty...)
				if change := Diff("straight", want, "over", got); change != nil {
					t.Errorf("%+v over an earlier swap is not the same as alone:\n%s", swap, change)
				}
				return edited.Manifest
			}
			swapped := apply(t, s.before, withConfig).Manifest
			over(swapped, next)
			if before := describe(t, string(s.before)); !before.Swapped {
				// An operator's own configuration was replaced.
				if _, own := before.Flag("config"); !own {
					over(swapped, imageOnly, "volumes", "volumeMounts")
				}
			}
			manifest := apply(t, s.before, s.swap).Manifest
			for _, mounts := range []string{"/etc/b", "/etc/a,/etc/b", "/etc/a,/etc/c", "/etc/c", ""} {
				swap := s.swap
				swap.Mounts = mounts
				manifest = over(manifest, swap, "volumes", "volumeMounts")
				if got := describe(t, string(manifest)).Swap; got != swap {
					t.Errorf("Describe = %+v, want %+v", got, swap)
				}
			}
		})
	}
}

// decoded returns the object of a manifest in a normal form.
func decoded(t testing.TB, manifest []byte) []byte { return without(t, manifest) }

// without is decoded, minus empty and null lists under the given keys.
func without(t testing.TB, manifest []byte, keys ...string) []byte {
	t.Helper()
	object := map[string]interface{}{}
	if err := kubernetesyaml.Unmarshal(bytes.TrimPrefix(manifest, []byte(byteOrderMark)), &object); err != nil {
		t.Fatal(err)
	}
	var visit func(value interface{})
	visit = func(value interface{}) {
		switch value := value.(type) {
		case map[string]interface{}:
			for _, key := range keys {
				if list, _ := value[key].([]interface{}); len(list) == 0 {
					delete(value, key)
				}
			}
			for _, child := range value {
				visit(child)
			}
		case []interface{}:
			for _, child := range value {
				visit(child)
			}
		}
	}
	visit(object)
	text, err := kubernetesyaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// lineChanges returns the removed and the added lines.
func lineChanges(before, after []byte) (gone, come []string) {
	for _, line := range strings.Split(string(Diff("before", before, "after", after)), "\n") {
		switch {
		case strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "diff "):
		case strings.HasPrefix(line, "-"):
			gone = append(gone, line[1:])
		case strings.HasPrefix(line, "+"):
			come = append(come, line[1:])
		}
	}
	return gone, come
}

func TestWhatKubeadmMayWriteKeepsItsBytes(t *testing.T) {
	kubeadm := string(readFile(t, "testdata/kubeadm/before.yaml"))
	for name, manifest := range map[string]string{
		// Effects of extraArgs, extraVolumes, an IPv6 cluster, and values that need quotes.
		"extra arguments": strings.Replace(kubeadm, "    - --leader-elect=true\n",
			"    - --leader-elect=true\n    - --profiling=false\n    - '--vmodule=a=1,b: 2'\n    - \"--v=4 \"\n", 1),
		"an extra volume": strings.Replace(strings.Replace(kubeadm, "  hostNetwork: true\n",
			"    - mountPath: /etc/my\n      name: my\n  hostNetwork: true\n", 1), "status: {}\n",
			"  - hostPath:\n      path: /etc/my\n      type: DirectoryOrCreate\n    name: my\nstatus: {}\n", 1),
		"IPv6":          strings.ReplaceAll(strings.ReplaceAll(kubeadm, "host: 127.0.0.1", "host: ::1"), "=127.0.0.1", "=::1"),
		"swapped":       string(readFile(t, "testdata/kubeadm/after.yaml")),
		"an annotation": strings.Replace(kubeadm, "metadata:\n", "metadata:\n  annotations:\n    a: \"true\"\n    b: |\n      two\n      lines\n", 1),
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := normalize([]byte(manifest))
			if err != nil {
				t.Fatal(err)
			}
			if change := Diff("kubeadm", []byte(manifest), "written again", parsed); change != nil {
				t.Errorf("%s", change)
			}
		})
	}
}

func TestAManifestThatWasEditedByHandKeepsItsContentAndItsComments(t *testing.T) {
	variants := map[string]func(string) string{
		"as it is":            func(s string) string { return s },
		"windows line ends":   func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"old mac line ends":   func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
		"no last line break":  func(s string) string { return strings.TrimRight(s, "\n") },
		"byte order mark":     func(s string) string { return byteOrderMark + s },
		"blank lines at ends": func(s string) string { return "\n\n" + s + "\n\n \n" },
	}
	for name, vary := range variants {
		for _, s := range scenarios(t) {
			if strings.Contains(s.name, "json") && name == "byte order mark" {
				continue
			}
			t.Run(name+"/"+s.name, func(t *testing.T) {
				before := []byte(vary(string(s.before)))
				got := apply(t, before, s.swap)
				if change := Diff("want", decoded(t, apply(t, s.before, s.swap).Manifest), "got", decoded(t, got.Manifest)); change != nil {
					t.Errorf("other content: %s", change)
				}
				comments := regexp.MustCompile(`(?m)(^|\s)#[^\r\n]*`).FindAllString(string(before), -1)
				for _, comment := range comments {
					// A comment after a removed item is removed with it.
					if comment = strings.TrimSpace(comment); !strings.Contains(string(got.Manifest), comment) && comment != "# this one counted" {
						t.Errorf("the comment %q is gone:\n%s", comment, got.Manifest)
					}
				}
				if asIs, err := normalize(before); err != nil || got.Reformatted == bytes.Equal(asIs, before) {
					t.Errorf("reformatted %t, %v", got.Reformatted, err)
				}
				if name != "as it is" && name != "no last line break" && !got.Reformatted {
					t.Error("it was reformatted, and that is not said")
				}
			})
		}
	}
}

func TestACommentThatWouldBeLostIsNotLost(t *testing.T) {
	// The parser drops this comment.
	manifest := strings.Replace(minimal, "    command:\n", "    command: # why\n    # what\n\n", 1)
	if edited, err := Apply([]byte(manifest), withConfig); err == nil {
		for _, comment := range []string{"# why", "# what"} {
			if !strings.Contains(string(edited.Manifest), comment) {
				t.Errorf("%s is gone:\n%s", comment, edited.Manifest)
			}
		}
	}
	if got := lostComment("a: 1 # one\nb: 2\t# two\n", "a: 1 # one\nb: 2\n"); got != "# two" {
		t.Errorf("lost: %q", got)
	}
	if got := lostComment("a: x#y # one\n", "# one\na: x#y\n"); got != "" {
		t.Errorf("lost: %q", got)
	}
}

func TestRestartChangesOneAnnotationOnly(t *testing.T) {
	first, second := time.Unix(1700000000, 1), time.Unix(1700000000, 2)
	for _, s := range scenarios(t) {
		t.Run(s.name, func(t *testing.T) {
			for _, manifest := range [][]byte{s.before, apply(t, s.before, s.swap).Manifest} {
				once := restart(t, manifest, first)
				twice := restart(t, once, second)
				if asKubeadmWrites[s.name] {
					_, come := lineChanges(manifest, once)
					for _, line := range come {
						if line != "  annotations:" && !strings.Contains(line, RestartedAtAnnotation) {
							t.Errorf("this line came: %s", line)
						}
					}
				}
				if gone, come := lineChanges(once, twice); len(gone) != 1 || len(come) != 1 || !strings.Contains(come[0], RestartedAtAnnotation) {
					t.Errorf("these lines went: %q, and these came: %q", gone, come)
				}
				if again := restart(t, twice, second); !bytes.Equal(again, twice) {
					t.Error("the same time changed the manifest")
				}
				if straight := restart(t, manifest, second); !bytes.Equal(straight, twice) {
					t.Errorf("two restarts are not the last one alone:\n%s", Diff("straight", straight, "twice", twice))
				}
			}
		})
	}
}

func restart(t testing.TB, manifest []byte, at time.Time) []byte {
	t.Helper()
	edited, err := Restart(manifest, at)
	if err != nil {
		t.Fatal(err)
	}
	return edited.Manifest
}

func TestTheRestartAnnotationIsNoSwapAndStaysWithoutATime(t *testing.T) {
	once := restart(t, []byte(stock), time.Unix(1700000000, 5))
	swap := withConfig
	swap.RestartedAt = time.Time{}
	for swapped, manifest := range map[bool][]byte{false: once, true: apply(t, once, swap).Manifest} {
		if pod := describe(t, string(manifest)); pod.Swapped != swapped || pod.Swap.RestartedAt.UnixNano() != 1700000000_000000005 {
			t.Errorf("swapped %t, want %t, at %v", pod.Swapped, swapped, pod.Swap.RestartedAt)
		}
	}
}

const minimal = `apiVersion: v1
kind: Pod
metadata:
  name: kube-scheduler
spec:
  containers:
  - name: kube-scheduler
    image: stock:1
    command:
    - kube-scheduler
`

func TestManifestsThatCannotBeSwapped(t *testing.T) {
	replace := func(old, new string) string {
		if !strings.Contains(minimal, old) {
			t.Fatalf("the manifest does not hold %q", old)
		}
		return strings.Replace(minimal, old, new, 1)
	}
	for name, test := range map[string]struct{ manifest, says string }{
		"empty":            {" \n\n", "is empty"},
		"comments only":    {"# nothing\n", "not YAML"},
		"list":             {"- a\n", "not a Kubernetes object"},
		"broken":           {minimal + " x\n", "not YAML"},
		"tabs":             {replace("    image", "\timage"), "not YAML"},
		"not UTF-8":        {minimal + "# \xff\n", "not UTF-8"},
		"two documents":    {minimal + "---\nkind: Service\n", "second document (line 12)"},
		"broken second":    {minimal + "---\n}\n", "not YAML"},
		"twice a key":      {replace("    image: stock:1\n", "    image: stock:1\n    image: stock:2\n"), `"image" in line 8 and again`},
		"other kind":       {replace("kind: Pod", "kind: Deployment"), `kind "Deployment" instead of a v1 Pod`},
		"no kind":          {replace("kind: Pod\n", ""), `kind "" instead of a v1 Pod`},
		"upper case":       {replace("kind: Pod", "Kind: Pod"), `kind "" instead of a v1 Pod`},
		"no name":          {replace("  name: kube-scheduler\n", "  labels: {}\n"), "no metadata.name"},
		"wrong type":       {replace("- kube-scheduler\n", "- kube-scheduler\n    - 7\n"), "cannot be decoded as a pod"},
		"no containers":    {minimal[:strings.Index(minimal, "  containers:")] + "  hostNetwork: true\n", "no container of the pod runs"},
		"other program":    {strings.ReplaceAll(minimal, "kube-scheduler", "kube-apiserver"), `(containers: "kube-apiserver")`},
		"no command":       {replace("    command:\n    - kube-scheduler\n", ""), "does not name the program"},
		"shell":            {replace("- kube-scheduler\n", "- sh\n    - -c\n    - exec kube-scheduler --v=2 >log\n"), "inside a shell command"},
		"end of flags":     {replace("- kube-scheduler\n", "- kube-scheduler\n    - --\n"), `contains "--"`},
		"two schedulers":   {minimal + "  - {name: b, image: c, command: [kube-scheduler]}\n", "several containers"},
		"flow is not JSON": {"{apiVersion: v1, kind: Pod}", "is not JSON"},
		"JSON escapes":     {`{"apiVersion": "v1", "kind": "Pod\/"}`, "jq . FILE"},
		"too long":         {minimal + "#" + strings.Repeat("x", maxManifest), "kubelet rejects more than 10485760"},
	} {
		t.Run(name, func(t *testing.T) {
			_, applied := Apply([]byte(test.manifest), withConfig)
			_, described := Describe([]byte(test.manifest))
			_, restarted := Restart([]byte(test.manifest), time.Now())
			for _, err := range []error{applied, described, restarted} {
				if err == nil {
					t.Fatalf("no error, want …%s…", test.says)
				}
				if _, next := nextstep.Split(err, ""); !strings.Contains(err.Error(), test.says) || next == "" {
					t.Errorf("got: %v\nwant: …%s…, and a next step", err, test.says)
				}
			}
		})
	}
}

func TestAChangeOfAnythingElseIsRefused(t *testing.T) {
	hostNetwork := place{"spec", "hostNetwork"}
	for name, change := range map[string]func(tree, Pod){
		"a field": func(t tree, _ Pod) {
			t.set(hostNetwork, &yaml.Node{Kind: yaml.ScalarNode, Tag: yaml.NodeTagBool, Value: "false"})
		},
		"a field goes": func(t tree, _ Pod) { t.drop(hostNetwork) },
		"an argument": func(t tree, _ Pod) {
			t.set(place{"spec", "containers", 0, "command", 5}, scalar("--leader-elect=false"))
		},
		"an argument goes":   func(t tree, _ Pod) { t.drop(place{"spec", "containers", 0, "command", 5}) },
		"another annotation": func(t tree, _ Pod) { t.setEntries(place{"metadata", "annotations"}, entry{"other", scalar("x")}) },
		"another mount": func(t tree, _ Pod) {
			t.drop(place{"spec", "containers", 0, "volumeMounts", 0})
		},
		"too little": func(t tree, _ Pod) { t.drop(place{"metadata", "annotations", VersionAnnotation}) },
	} {
		plan := func(t tree, pod Pod) {
			withConfig.plan(t, pod)
			change(t, pod)
		}
		_, err := edit(readFile(t, "testdata/kubeadm/before.yaml"), plan, withConfig.proof)
		if err == nil || !strings.Contains(err.Error(), "cannot be changed safely") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASwapThatMakesTheManifestTooLongIsRefused(t *testing.T) {
	manifest := minimal + "#" + strings.Repeat("x", maxManifest-len(minimal)-20)
	if _, err := Apply([]byte(manifest), withConfig); err == nil || !strings.Contains(err.Error(), "more than 10485760 bytes") {
		t.Error(err)
	}
}

func TestSwapsThatCannotBe(t *testing.T) {
	for name, change := range map[string]func(*Swap){
		"no image":          func(s *Swap) { s.Image = "" },
		"image with blanks": func(s *Swap) { s.Image = "a b" },
		"image as a flag":   func(s *Swap) { s.Image = "--a" },
		"no hash":           func(s *Swap) { s.ConfigSHA256 = "" },
		"short hash":        func(s *Swap) { s.ConfigSHA256 = "abc" },
		"no folder":         func(s *Swap) { s.ConfigFolder = "" },
		"relative folder":   func(s *Swap) { s.ConfigFolder = "configs" },
		"unclean folder":    func(s *Swap) { s.ConfigFolder = "/a/../b" },
		"relative mount":    func(s *Swap) { s.Mounts = "/a,b" },
	} {
		swap := withConfig
		change(&swap)
		_, applied := Apply([]byte(minimal), swap)
		_, patch := KubeadmPatch(swap)
		for _, err := range []error{applied, patch} {
			if err == nil {
				t.Errorf("%s: it can be", name)
			} else if _, next := nextstep.Split(err, ""); next == "" {
				t.Errorf("%s: no next step: %v", name, err)
			}
		}
	}
}

func TestMergeKeysAreWrittenOut(t *testing.T) {
	manifest := strings.Replace(minimal, "spec:\n", `  annotations:
    note: &note text
spec:
`, 1) + `    env: &env
    - {name: A, value: *note}
  - &side
    name: side
    image: side:1
    command: [side]
    env: *env
    volumeMounts: [{name: v, mountPath: /v}]
  - <<: *side
    name: other
  volumes: [{name: v, emptyDir: {}}]
`
	inherited := strings.Replace(manifest, "    command:\n    - kube-scheduler\n    env: &env", "    env: &env", 1) +
		"  - <<: *side\n    name: scheduler\n    command: [kube-scheduler]\n"
	inherited = strings.Replace(inherited, "  volumes: [{name: v, emptyDir: {}}]\n", "", 1) + "  volumes: [{name: v, emptyDir: {}}]\n"
	inherited = strings.Replace(inherited, "- name: kube-scheduler", "- name: first", 1)
	edited := apply(t, []byte(inherited), withConfig)
	if !edited.Reformatted || strings.Contains(string(edited.Manifest), "<<") {
		t.Errorf("what comes from an anchor was changed:\n%s", edited.Manifest)
	}
	pod, err := Describe(edited.Manifest)
	if err != nil || pod.Swap != withConfig || len(pod.Object.Spec.Containers[1].VolumeMounts) != 1 {
		t.Errorf("%v\n%s", err, edited.Manifest)
	}
}

func FuzzApplyNeverPanicsAndProvesItsResult(f *testing.F) {
	for _, s := range scenarios(f) {
		f.Add(s.before)
		f.Add(s.after)
	}
	f.Fuzz(func(t *testing.T, manifest []byte) {
		mounting := withConfig
		mounting.Mounts = "/etc/extender,/etc/tracing"
		hardened := withConfig
		hardened.Hardened, hardened.NonRoot = true, true
		for _, swap := range []Swap{withConfig, imageOnly, mounting, hardened} {
			edited, err := Apply(manifest, swap)
			if err != nil {
				if _, next := nextstep.Split(err, ""); next == "" {
					t.Fatalf("no next step: %v", err)
				}
				continue
			}
			pod, err := Describe(edited.Manifest)
			if before, err := Describe(manifest); err == nil {
				swap.Hardened, swap.NonRoot = swap.Hardened || before.Swap.Hardened, swap.NonRoot || before.Swap.NonRoot
			}
			if err != nil || !pod.Swapped || pod.Swap != swap {
				t.Fatalf("%+v, %v", pod, err)
			}
			again, err := Apply(edited.Manifest, swap)
			if err != nil || again.Reformatted || !bytes.Equal(again.Manifest, edited.Manifest) {
				t.Fatalf("not the same again: %v\n%s", err, Diff("once", edited.Manifest, "again", again.Manifest))
			}
		}
	})
}

func TestASwappedImageIsNeverPulled(t *testing.T) {
	unset := strings.Replace(stock, "    imagePullPolicy: IfNotPresent\n", "", 1)
	for _, manifest := range []string{
		strings.Replace(stock, "imagePullPolicy: IfNotPresent", "imagePullPolicy: Always", 1),
		strings.Replace(unset, ":v1.23.17", ":latest", 1),
		strings.Replace(unset, "kube-scheduler:v1.23.17", "kube-scheduler", 1),
	} {
		if before := describe(t, manifest); !before.Pulls() {
			t.Errorf("kubelet would pull the image of\n%s", manifest)
		}
		if after := describe(t, string(apply(t, []byte(manifest), withConfig).Manifest)); after.Pulls() {
			t.Errorf("imagePullPolicy is %q", after.Container().ImagePullPolicy)
		}
		edit, err := WithoutPull([]byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		if after := describe(t, string(edit.Manifest)); after.Pulls() || after.Image != describe(t, manifest).Image {
			t.Errorf("imagePullPolicy is %q, the image %s", after.Container().ImagePullPolicy, after.Image)
		}
	}
	if before := describe(t, unset); before.Pulls() {
		t.Error("an image with a tag is not pulled")
	}
}
