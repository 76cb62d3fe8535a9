// SPDX-License-Identifier: Apache-2.0

// Package addmodule adds a module of the test to the real scheduler,
// checks that its plugin filters nodes for pods, and removes it.
package addmodule

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/mod/module"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
	"kube-scheduler-fork/test/moduleproxy"
)

const path = "example.org/add-module-test/"

var shared cluster.Shared

func TestMain(m *testing.M) { cluster.Main(m, &shared) }

// run runs a command, which must succeed, and returns its output.
func run(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	t.Logf("%v", command.Args)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, output)
	}
	return strings.TrimSpace(string(output))
}

func TestModuleIsAddedUsedAndRemoved(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	made := os.Getenv("OUTPUT")
	if made == "" {
		made = filepath.Join(root, "_output")
	}
	// The tree and its build outputs are copied, because other tests use them at the same time.
	output, err := os.MkdirTemp(made, "add-module-")
	if err != nil {
		t.Fatalf("%v; next: make image", err)
	}
	t.Cleanup(func() { os.RemoveAll(output) })
	run(t, exec.Command("flock", filepath.Join(made, ".lock"), "cp", "-a", "--reflink=auto",
		filepath.Join(made, "kubernetes"), filepath.Join(made, "bin"), output))
	modulesFile := filepath.Join(output, "modules.yaml")
	before := cluster.Read(t, filepath.Join(root, "modules.yaml"))
	if err := os.WriteFile(modulesFile, []byte(before), 0o644); err != nil {
		t.Fatal(err)
	}

	goEnvironment := strings.Split(run(t, exec.Command("go", "env", "GOMODCACHE", "GOPROXY")), "\n")
	archive, err := txtar.ParseFile("testdata/modules.txtar")
	if err != nil {
		t.Fatal(err)
	}
	sources, proxy := t.TempDir(), t.TempDir()
	if err := txtar.Write(archive, sources); err != nil {
		t.Fatal(err)
	}
	for name, version := range map[string]string{"tenants": "v1.0.0", "lacking": "v0.1.0"} {
		published := module.Version{Path: path + name, Version: version}
		moduleproxy.Publish(t, proxy, filepath.Join(sources, name), published, goEnvironment[0])
	}
	makeTarget := func(arguments ...string) string {
		t.Helper()
		command := exec.Command("make", append([]string{"--no-print-directory", "-C", root}, arguments...)...)
		command.Env = append(os.Environ(), "OUTPUT="+output, "MODULES_FILE="+modulesFile,
			"GOPROXY=file://"+proxy+","+goEnvironment[1], "GOSUMDB=off")
		return run(t, command)
	}
	head := func() string {
		t.Helper()
		return run(t, exec.Command("git", "-C", filepath.Join(output, "kubernetes"), "rev-parse", "HEAD"))
	}

	makeTarget("tree")
	commit := head()
	t.Log(makeTarget("add-module", "MODULE="+path+"tenants@v1.0.0", "PLUGINS=Tenants"))
	with := cluster.Read(t, modulesFile)
	if !strings.HasPrefix(with, before) || !strings.Contains(with, "- module: "+path+"tenants\n") {
		t.Errorf("modules.yaml is\n%s", with)
	}
	if head() == commit {
		t.Error("the tree did not change")
	}

	scheduler := filepath.Join(output, "bin/linux", runtime.GOARCH, "kube-scheduler")
	config := filepath.Join(t.TempDir(), "config.yaml")
	const good = "{tenants: [default]}"
	configure := func(args string) {
		cluster.Write(t, config, "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"+
			"leaderElection: {leaderElect: false}\nprofiles:\n- schedulerName: default-scheduler\n"+
			"  plugins: {filter: {enabled: [{name: Tenants}]}}\n"+
			"  pluginConfig:\n  - name: Tenants\n    args: "+args+"\n")
	}
	for _, tt := range []struct{ args, want string }{
		{good, "Tenants"},
		{"{tenants: [a], tenant: b}", "args.tenant: unknown field: the known fields are tenants"},
		{"{tenants: a}", "tenants"},
		{"{}", "there are no tenants"},
	} {
		configure(tt.args)
		said, err := exec.Command(scheduler, "--config", config, "--validate-config").CombinedOutput()
		if (err == nil) != (tt.args == good) || !strings.Contains(string(said), tt.want) {
			t.Errorf("with %s the scheduler says (%v), want %q:\n%s", tt.args, err, tt.want, said)
		}
	}

	configure(good)
	decides(t, scheduler, config)

	makeTarget("remove-module", "MODULE="+path+"tenants")
	if after := cluster.Read(t, modulesFile); after != before {
		t.Errorf("modules.yaml is afterwards\n%s", after)
	}
	makeTarget("tree")
	if got := head(); got != commit {
		t.Errorf("the tree is afterwards at %s, want %s", got, commit)
	}
}

// decides checks that the plugin allows a pod of the tenant on the node, and rejects another.
func decides(t *testing.T, scheduler, config string) {
	c := shared.Get(t)
	c.AddNodes(t, 1)
	c.StartScheduler(t, scheduler, config)
	c.AwaitBound(t, c.CreatePod(t, localcluster.NewPod("of-the-tenant", "")))
	const elsewhere = "of-no-tenant"
	c.Create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+elsewhere+"}}")
	other := localcluster.NewPod("other", "")
	other.Namespace = elsewhere
	c.CreatePod(t, other)
	c.AwaitPending(t, other.Namespace, other.Name, "the pod is of no tenant")
}
