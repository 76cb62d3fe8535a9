// SPDX-License-Identifier: Apache-2.0

// Package cluster provides tests with a local control plane, schedulers, accounts, tokens, the audit log, and waiting.
//
// The tests of a package share one control plane, one after the other: see Shared. The variables ETCD, KUBE_APISERVER
// and KWOK name its programs.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/localcluster"
)

// Shared is a control plane that is started for the first test that needs it, and stopped after all tests of the
// package. Parallel tests cannot share one.
type Shared struct {
	// AuditPolicy is the policy of the API server's audit log; without, there is no log.
	AuditPolicy string
	// Aggregation enables the API server to forward requests to the API servers of APIServices.
	Aggregation bool
	// KWOKConfig is as in localcluster.Options.
	KWOKConfig string
	// AdmissionConfiguration is a file that configures the API server's admission plugins, or empty.
	AdmissionConfiguration string

	folder string
	plane  *localcluster.ControlPlane
	mutex  sync.Mutex
}

// Main runs the tests of a package and stops the shared control planes. It is for TestMain, and does not return.
func Main(m *testing.M, shared ...*Shared) {
	code := m.Run()
	for _, s := range shared {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func (s *Shared) stop() error {
	if s.plane == nil {
		return nil
	}
	return errors.Join(s.plane.Stop(), os.RemoveAll(s.folder))
}

// Cluster is a shared control plane that one test uses.
type Cluster struct {
	*localcluster.ControlPlane
	auditLog string
	began    time.Time
	// logs are those of the test's schedulers.
	logs []string
}

// Get returns the control plane for a test, without nodes, pods, events and leases. At the end of the test its
// schedulers are stopped, and those objects are removed; the test removes other objects itself.
func (s *Shared) Get(t testing.TB) *Cluster {
	t.Helper()
	if !s.mutex.TryLock() {
		t.Fatal("another test has the control plane; next: run tests that share one after each other")
	}
	t.Cleanup(s.mutex.Unlock)
	if s.plane == nil {
		s.start(t)
	}
	c := &Cluster{ControlPlane: s.plane, auditLog: filepath.Join(s.folder, "audit.log"), began: time.Now()}
	t.Cleanup(func() { c.clear(t) })
	return c
}

func (s *Shared) start(t testing.TB) {
	t.Helper()
	options := localcluster.Options{
		Etcd: Program(t, "ETCD"), KubeAPIServer: Program(t, "KUBE_APISERVER"), KWOK: Program(t, "KWOK"),
		KWOKConfig: s.KWOKConfig, Progress: os.Stdout,
	}
	var err error
	// Other tests need it too, so it is not the test's directory.
	if s.folder, err = os.MkdirTemp("", "cluster-"); err != nil {
		t.Fatal(err)
	}
	if s.AuditPolicy != "" {
		policy := filepath.Join(s.folder, "audit-policy.yaml")
		Write(t, policy, s.AuditPolicy)
		options.APIServerArguments = []string{
			"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(s.folder, "audit.log"),
		}
	}
	if s.Aggregation {
		options.APIServerArguments = append(options.APIServerArguments, aggregation(t, s.folder)...)
	}
	if s.AdmissionConfiguration != "" {
		options.APIServerArguments = append(options.APIServerArguments, "--admission-control-config-file="+s.AdmissionConfiguration)
	}
	if s.plane, err = localcluster.Start(t.Context(), options); err != nil {
		t.Fatal(errors.Join(err, os.RemoveAll(s.folder)))
	}
}

// aggregation writes the front-proxy authority and certificate by which other API servers trust this one, and returns
// the arguments for them and for the headers with the user.
func aggregation(t testing.TB, folder string) []string {
	t.Helper()
	const user = "front-proxy-client"
	authority, err := localcluster.NewAuthority("front-proxy")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.Client(user)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		file := filepath.Join(folder, name)
		Write(t, file, string(content))
		return file
	}
	return []string{
		"--requestheader-client-ca-file=" + write("front-proxy-ca.crt", authority.PEM()),
		"--requestheader-allowed-names=" + user,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + write("front-proxy-client.crt", pair.Certificate),
		"--proxy-client-key-file=" + write("front-proxy-client.key", pair.Key),
	}
}

// clear removes the objects that would disturb the next test.
func (c *Cluster) clear(t testing.TB) {
	t.Helper()
	if err := c.Failure(); err != nil {
		t.Error(err)
		return
	}
	// The test's own context has ended.
	ctx := context.Background()
	client, now, all := c.Client(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}
	c.Await(t, "everything to be removed that the test has left", func() error {
		namespaces, err := client.CoreV1().Namespaces().List(ctx, all)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces.Items {
			if err := errors.Join(
				client.CoreV1().Pods(namespace.Name).DeleteCollection(ctx, now, all),
				client.CoreV1().Events(namespace.Name).DeleteCollection(ctx, now, all),
			); err != nil {
				return err
			}
		}
		if err := errors.Join(
			client.CoreV1().Nodes().DeleteCollection(ctx, now, all),
			client.CoordinationV1().Leases(metav1.NamespaceSystem).DeleteCollection(ctx, now, all),
			client.CoordinationV1().Leases(corev1.NamespaceNodeLease).DeleteCollection(ctx, now, all),
		); err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, all)
		if err != nil {
			return err
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, all)
		if err != nil {
			return err
		}
		if len(pods.Items)+len(nodes.Items) > 0 {
			return fmt.Errorf("%d pods and %d nodes are left", len(pods.Items), len(nodes.Items))
		}
		return nil
	})
}

// StartScheduler starts a scheduler with a configuration, and with the first of the options if there are any. It is stopped
// when the test ends.
func (c *Cluster) StartScheduler(
	t testing.TB, program, config string, options ...localcluster.SchedulerOptions,
) *localcluster.Scheduler {
	t.Helper()
	scheduler, err := c.ControlPlane.StartScheduler(t.Context(), program, config, append(options, localcluster.SchedulerOptions{})[0])
	if err != nil {
		t.Fatal(err)
	}
	c.logs = append(c.logs, scheduler.LogFile())
	t.Cleanup(func() {
		if err := scheduler.Stop(); err != nil {
			t.Error(err)
		}
	})
	return scheduler
}

// Kubectl runs kubectl, the program of the variable KUBECTL, as an administrator.
func (c *Cluster) Kubectl(t testing.TB, ctx context.Context, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(ctx, Program(t, "KUBECTL"), arguments...)
	// It caches the API server's resources in the home directory.
	command.Env = []string{"KUBECONFIG=" + c.Kubeconfig(), "HOME=" + c.Folder()}
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// AddNodes creates fake nodes, node-1 and so on.
func (c *Cluster) AddNodes(t testing.TB, count int) []string {
	t.Helper()
	names, err := c.ControlPlane.AddNodes(t.Context(), count)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// CreateNodes creates fake nodes.
func (c *Cluster) CreateNodes(t testing.TB, nodes ...*corev1.Node) {
	t.Helper()
	if err := c.ControlPlane.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
}

// CreatePod creates a pod and returns the API server's copy.
func (c *Cluster) CreatePod(t testing.TB, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := c.Client().CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}
