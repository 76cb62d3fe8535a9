// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/build/localcluster/supervisor"
	"kube-scheduler-fork/test/cluster"
)

const (
	// limit, available and hotAbove are evictionLimits.node, minAvailable of web, and targetThresholds.
	limit, available, hotAbove = 2, 18, 80
	// rest is the number of passes without an eviction after which the test ends.
	rest = 4
	// interval is the time between two passes, longer than the window of the queries.
	interval = "15s"
)

func TestHotNodeIsCooled(t *testing.T) {
	s := newStand(t)
	for _, name := range []string{"node-1", "node-2", "node-3", "node-4"} {
		node := newNode(name, "")
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, localcluster.LoadAnnotation+"cpu", "0.1")
		s.CreateNodes(t, node)
	}
	endpoint := "http://" + cluster.FreeAddress(t, "127.0.0.2")
	s.ServeLoads(t, endpoint)
	// The files have intervals for a cluster.
	quick := strings.NewReplacer("http://127.0.0.1:9090", endpoint, "5m", "10s", "30s", "1s")
	quickened := func(name string) string {
		file := filepath.Join(t.TempDir(), name)
		cluster.Write(t, file, quick.Replace(cluster.Read(t, examples+"hot-node/"+name)))
		return file
	}
	s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), quickened("scheduler.yaml"))
	s.follow(t, "A node got hot")
	s.awaitCounts(t, "", map[string][2]int{"web": {20, 0}, "cache": {4, 0}, "database": {1, 0}})
	hot, before, caches := s.pods(t, "database")[0].Spec.NodeName, s.nodesOf(t, "web"), s.nodesOf(t, "cache")
	// After four evictions the node has 75 %. NodeLoad takes off evicted pods at once, by an estimate, and must not open the
	// node because of its error: its threshold is 70.
	s.Kubectl(t, t.Context(), "annotate", "pods", "--selector=app=database", "--overwrite", localcluster.LoadAnnotation+"cpu=0.56")

	log := s.descheduleAsPod(t, quickened("descheduler-policy.yaml"))
	var passes []pass
	s.Await(t, fmt.Sprintf("%d passes without an eviction after those with evictions", rest), func() error {
		ready := slices.DeleteFunc(s.pods(t, "web"), func(pod corev1.Pod) bool { return !podReady(&pod) })
		if len(ready) < available {
			t.Fatalf("%d pods of web are available, want %d", len(ready), available)
		}
		passes = passesIn(cluster.Read(t, log))
		last := len(passes) - 1
		for last >= 0 && len(passes[last].evicted) == 0 {
			last--
		}
		return cluster.Unless(last >= 0 && len(passes)-1-last >= rest, "the passes are %v", passes)
	}, log)
	t.Logf("the passes of descheduler: %v", passes)

	evicted := 0
	for number, pass := range passes {
		for node, count := range pass.evicted {
			evicted += count
			if node != hot || count > limit {
				t.Errorf("pass %d evicted %d pods from %s, want at most %d, and only from %s", number, count, node, limit, hot)
			}
		}
	}
	loads := passes[len(passes)-1].load
	if len(loads) != 4 || slices.Max(slices.Collect(maps.Values(loads))) > hotAbove {
		t.Errorf("the loads are %v, want 4, of at most %d %%", loads, hotAbove)
	}
	after := s.nodesOf(t, "web")
	t.Logf("%s is hot; pods of web on each node: before %v, after %v", hot, before, after)
	if after[hot] != before[hot]-evicted {
		t.Errorf("%s has %d pods of web, want %d: %d before, and %d evicted", hot, after[hot], before[hot]-evicted, before[hot], evicted)
	}
	if is := s.nodesOf(t, "cache"); !maps.Equal(is, caches) {
		t.Errorf("the pods of cache are on %v, want %v as before", is, caches)
	}
	if !strings.Contains(cluster.Read(t, log), "Cannot evict pod as it would violate the pod's disruption budget") {
		t.Error("descheduler has not tried to evict pods of cache")
	}
}

// nodesOf returns the number of pods of an app on each node.
func (s *stand) nodesOf(t *testing.T, app string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for _, pod := range s.pods(t, app) {
		count[pod.Spec.NodeName]++
	}
	return count
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// descheduleAsPod runs descheduler as a container with the arguments on the page, because it gets its access to
// Prometheus from the files of its service account. It returns the path of its log.
func (s *stand) descheduleAsPod(t *testing.T, policy string) string {
	t.Helper()
	const (
		account = "/run/secrets/kubernetes.io/serviceaccount"
		onPage  = "--policy-config-file " + examples + "hot-node/descheduler-policy.yaml --descheduling-interval 10m"
		inPod   = "mount -t tmpfs none /run && mkdir -p " + account + " && cp token ca.crt " + account + ` && exec "$@"`
	)
	if !strings.Contains(cluster.Read(t, page), "    descheduler "+onPage+"\n") {
		t.Fatalf("%s does not have descheduler's arguments %q", page, onPage)
	}
	user := cluster.Account{Namespace: metav1.NamespaceSystem, Name: "descheduler"}
	s.CreateAccount(t, user, rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"})
	folder := t.TempDir()
	cluster.Write(t, folder+"/token", s.Token(t, user))
	cluster.Write(t, folder+"/ca.crt", cluster.Read(t, s.Folder()+"/ca.crt"))
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	process, _, err := s.processes.Start(t.Context(), supervisor.Component{
		Name: "descheduler", Executable: "/usr/bin/unshare", Directory: folder, Next: "read what its log says",
		Environment: []string{"PATH=/usr/bin:/bin", "KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port()},
		Arguments: func(int) []string {
			return []string{"--map-root-user", "--mount", "sh", "-c", inPod, "sh", cluster.Program(t, "DESCHEDULER"),
				"--policy-config-file=" + policy, "--descheduling-interval=" + interval, "--secure-port=0", "--v=1"}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return process.LogFile()
}

// pass is a run of descheduler's strategies: the pods evicted from each node, and the load of each node in percent.
type pass struct{ evicted, load map[string]int }

var (
	evictedLine = regexp.MustCompile(`"Evicted pod".* node="([^"]+)"`)
	loadLine    = regexp.MustCompile(`node="([^"]+)".* usagePercentage=\{"MetricResource":(\d+)`)
)

// passesIn returns the complete passes of a log of descheduler.
func passesIn(log string) []pass {
	var passes []pass
	sections := strings.Split(log, `"Number of evictions/requests"`)
	for _, section := range sections[:len(sections)-1] {
		one := pass{map[string]int{}, map[string]int{}}
		for _, found := range evictedLine.FindAllStringSubmatch(section, -1) {
			one.evicted[found[1]]++
		}
		for _, found := range loadLine.FindAllStringSubmatch(section, -1) {
			one.load[found[1]], _ = strconv.Atoi(found[2])
		}
		passes = append(passes, one)
	}
	return passes
}
