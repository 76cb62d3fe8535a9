// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/localcluster/supervisor"
	"kube-scheduler-fork/test/cluster"
)

const (
	// itsRights are the permissions of the account secondScheduler, and mayReadMetrics grants it one more.
	itsRights      = "../../../manifests/second-scheduler"
	mayReadMetrics = "../../../manifests/examples/second-scheduler-node-load/read-metrics.yaml"

	// metricsServerRole grants metrics-server its reads of the API.
	metricsServerRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: metrics-server
rules:
  - apiGroups: [""]
    resources: [nodes, pods]
    verbs: [list, watch]
`
	// metricsAPI makes the API server forward requests to it, at a port of this machine.
	metricsAPI = `
apiVersion: v1
kind: Service
metadata:
  namespace: kube-system
  name: metrics-server
spec:
  type: ExternalName
  externalName: localhost
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.metrics.k8s.io
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: metrics-server, port: %d}
`
)

var (
	secondScheduler      = cluster.Account{Namespace: metav1.NamespaceSystem, Name: "second-scheduler"}
	metricsServerAccount = cluster.Account{Namespace: metav1.NamespaceSystem, Name: "metrics-server"}
)

// metricsServer tests the scheduler of manifests/second-scheduler with a real metrics-server and only the additional
// permission in read-metrics.yaml, which is removed and granted again.
func metricsServer(t *testing.T) {
	const (
		name = "second-scheduler"
		pods = 12
	)
	s := newMeteredStand(t, 6)
	hot, idle := s.nodes[:3], s.nodes[3:]
	s.exporters.load(0.95, hot...)
	logFile := s.startMetricsServer(t)
	s.apply(t, "-k", itsRights)
	remove := s.apply(t, "-f", mayReadMetrics)
	s.awaitAllowed(t, secondScheduler,
		authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"},
		authorizationv1.ResourceAttributes{Verb: "list", Group: "metrics.k8s.io", Resource: "nodes"})
	scheduler := s.startScheduler(t, "kube-scheduler", s.configuration(t, "metrics-server", profile(name, object{
		"source": "MetricsServer", "refreshInterval": "1s", "maxSampleAge": "2m",
		// By memory, pods would go to the nodes with hot CPUs.
		"resources": []object{
			{"name": "cpu", "threshold": 80, "weight": 0},
			{"name": "memory", "strategy": "TargetUtilization", "target": 60},
		},
	})), localcluster.SchedulerOptions{Token: s.Token(t, secondScheduler)})
	// onlyOn checks that the measurements reach the scheduler, and that pods are placed by them.
	onlyOn := func(idle []string) {
		t.Helper()
		s.Await(t, "the nodes to be measured as they are", func() error {
			page, err := s.page(scheduler)
			if err != nil {
				return err
			}
			for _, node := range s.nodes {
				busy, seen := 95., page.of[name][node]
				if slices.Contains(idle, node) {
					busy = 10
				}
				for resource, want := range map[string]float64{"cpu": busy, "memory": busy / 2} {
					if is := seen[resource]; is.missing != "" || math.Abs(is.percent-want) > 0.5 {
						return fmt.Errorf("%s of %s is at %.1f %%, want %.1f %% (missing: %q)",
							resource, node, is.percent, want, is.missing)
					}
				}
			}
			return cluster.Unless(page.state == "Fresh", "the source is %q because of %q", page.state, page.problem)
		}, logFile)
		for node, count := range s.place(t, s.newPods(pods, name, "100m")) {
			if !slices.Contains(idle, node) {
				t.Errorf("%d pods are on %s, which is hot", count, node)
			}
		}
	}
	onlyOn(idle)
	// The fix that the page and the problem below lead to.
	s.Kubectl(t, t.Context(), "top", "nodes")

	remove()
	var problem string
	s.Await(t, "the scheduler to say that it lacks a right", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		problem = page.problem
		well := page.state == "Down" && strings.Contains(problem, "nodes.metrics.k8s.io is forbidden") &&
			strings.Contains(problem, "may list nodes of the API group metrics.k8s.io")
		return cluster.Unless(well, "the source is %q because of %q", page.state, problem)
	})
	t.Logf("without the right: %s", problem)
	// Meanwhile pods are still placed, and the load changes unseen by the scheduler.
	s.place(t, s.newPods(1, name, "100m"))
	s.exporters.load(0.1, hot...)
	s.exporters.load(0.95, idle...)

	s.apply(t, "-f", mayReadMetrics)
	onlyOn(hot)
}

// newMeteredStand returns a stand whose nodes each have a fake kubelet for metrics-server to scrape.
func newMeteredStand(t *testing.T, count int) *stand {
	t.Helper()
	s := &stand{Cluster: shared.Get(t), folder: t.TempDir(), instances: map[string]string{}}
	nodes, targets := newNodes(count), []target(nil)
	for _, node := range nodes {
		targets = append(targets, target{exporter: node.Name})
	}
	s.exporters = newExporters(t, targets)
	for _, node := range nodes {
		kubelet := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/metrics/resource" {
				http.NotFound(w, r)
				return
			}
			s.exporters.of[node.Name].serveResources(w, node.Status.Capacity)
		}))
		kubelet.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log connections closed at the end
		kubelet.StartTLS()
		t.Cleanup(kubelet.Close)
		address := kubelet.Listener.Addr().(*net.TCPAddr)
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.IP.String()}}
		node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(address.Port)
	}
	s.addNodes(t, nodes)
	return s
}

// startMetricsServer starts metrics-server with its own account, waits until
// the API server forwards requests to it, and returns the path of its log.
func (s *stand) startMetricsServer(t *testing.T) string {
	t.Helper()
	s.write(t, "metrics-server-role.yaml", metricsServerRole)
	s.apply(t, "-f", s.file("metrics-server-role.yaml"))
	s.CreateAccount(t, metricsServerAccount,
		rbacv1.RoleRef{Kind: "Role", Name: "extension-apiserver-authentication-reader"},
		rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:auth-delegator"},
		rbacv1.RoleRef{Kind: "ClusterRole", Name: "metrics-server"})
	s.awaitAllowed(t, metricsServerAccount, authorizationv1.ResourceAttributes{Verb: "list", Resource: "nodes"})
	kubeconfig := s.file("metrics-server.kubeconfig")
	config, err := clientcmd.LoadFromFile(s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: s.Token(t, metricsServerAccount)}
	}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	// Its certificate is self-signed.
	processes, err := supervisor.New(t.TempDir(), &tls.Config{InsecureSkipVerify: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(processes.Failure(), processes.Stop()); err != nil {
			t.Error(err)
		}
	})
	process, port, err := processes.Start(t.Context(), supervisor.Component{
		Name: "metrics-server", Executable: cluster.Program(t, "METRICS_SERVER"), Next: "read what its log says",
		Environment: []string{"HOME=" + processes.Folder()}, Directory: processes.Folder(),
		// It is ready once it has measured the CPU use between two scrapes.
		Listens: true, Ready: "/readyz",
		Arguments: func(port int) []string {
			return []string{
				"--bind-address=" + supervisor.Loopback, "--secure-port=" + strconv.Itoa(port),
				"--kubeconfig=" + kubeconfig,
				"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
				"--kubelet-use-node-status-port", "--kubelet-insecure-tls",
				"--kubelet-preferred-address-types=InternalIP", "--metric-resolution=10s",
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "metrics-api.yaml", fmt.Sprintf(metricsAPI, port))
	s.apply(t, "-f", s.file("metrics-api.yaml"))
	return process.LogFile()
}

// apply applies a manifest (-f) or a kustomization (-k) with kubectl. It is removed at the end of the test, or before.
func (s *stand) apply(t *testing.T, how, what string) (remove func()) {
	t.Helper()
	s.Kubectl(t, t.Context(), "apply", how, what)
	remove = func() { s.Kubectl(t, context.Background(), "delete", "--ignore-not-found", how, what) }
	t.Cleanup(remove)
	return remove
}

// awaitAllowed waits until an account has some permissions, and may read the API server's authentication configuration:
// a program that may not read it at start does not retry.
func (s *stand) awaitAllowed(t *testing.T, account cluster.Account, things ...authorizationv1.ResourceAttributes) {
	t.Helper()
	for _, thing := range append(things, authorizationv1.ResourceAttributes{
		Verb: "get", Resource: "configmaps",
		Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication",
	}) {
		s.AwaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{User: account.User(), ResourceAttributes: &thing})
	}
}
