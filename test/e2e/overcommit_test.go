// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"kube-scheduler-fork/test/e2e/kubeadmnode"
)

const (
	// measurements makes Prometheus scrape the kubelet and the scheduler, as the API server's client, and log the queries
	// of the scheduler.
	measurements = `global: {scrape_interval: 5s, scrape_timeout: 5s, query_log_file: /root/queries}
scrape_configs:
- job_name: kubelet
  scheme: https
  metrics_path: /metrics/cadvisor
  tls_config: &client {cert_file: /etc/kubernetes/pki/apiserver-kubelet-client.crt, key_file: /etc/kubernetes/pki/apiserver-kubelet-client.key, insecure_skip_verify: true}
  static_configs: [{targets: ["%s:10250"]}]
- job_name: kube-scheduler
  scheme: https
  metrics_path: /metrics/resources
  tls_config: *client
  static_configs: [{targets: ["127.0.0.1:10259"]}]
`
	// shell gives a pod with kubeadm's pause image the node's bash. The program is last.
	shell = `"terminationGracePeriodSeconds": 1, "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
  "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.6",
  "volumeMounts": [{"name": "usr", "mountPath": "/usr"}, {"name": "usr", "mountPath": "/lib", "subPath": "lib"}, {"name": "usr", "mountPath": "/lib64", "subPath": "lib64"}],
  "command": ["/usr/bin/bash", "-c", %q]`
	computes = "while :; do :; done"
	// waitsThenComputes computes on two CPUs after the signal CONT.
	waitsThenComputes = "work() { kill -STOP $BASHPID; " + computes + "; }; work & work & wait"
)

// TestOvercommit fills a node by requests, runs overcommitting pods there, measures what an ordinary pod gets that starts
// to compute, and restarts kubelet and the scheduler.
func TestOvercommit(t *testing.T) {
	o := &operator{page: readPage(t, filepath.Join("..", "..", "docs", "operations.md")), node: start(t, kubeadmnode.NodeOptions{Name: "busy"})}
	if err := o.node.Init(t.Context(), kubeadmnode.InitOptions{}); err != nil {
		t.Fatal(err)
	}
	o.connect(t)
	o.copyBundle(t, o.node)
	o.page.do(t, o.node, "unpack")
	o.page.folder = strings.TrimSpace(o.run(t, "realpath kube-scheduler-*/"))
	o.startPrometheus(t)
	ordinary, request := o.fill(t)

	// Maximum counts a part of the requests of pods that are younger than its horizon, at least half an hour. Percentile
	// does not after a quarter of it, so it places the first pods.
	o.run(t, `sed 's/predictor: .*/predictor: Percentile/' manifests/config/overcommit.yaml > both.yaml
sed -n 's/default-scheduler/by-maximum/; /schedulerName/,$p' manifests/config/overcommit.yaml >> both.yaml
sed -i 's/horizon: .*/horizon: 30m/' both.yaml
kube-scheduler-swap install --archive kube-scheduler.tar --config both.yaml`)

	// The other tests run while Prometheus measures.
	t.Parallel()
	o.run(t, "kubectl patch --local --filename manifests/examples/overcommit/job.yaml --output yaml --patch '{\"spec\": {\"template\": {\"spec\": {"+
		fmt.Sprintf(shell, computes)+"}]}}}}' | kubectl apply --filename -")
	pods := o.running(t, "job-name=reports", 4)
	o.measureShares(t, ordinary, request, pods)
	o.expectTakenOff(t)

	since := time.Now()
	o.run(t, `kubelet=$(pgrep -x kubelet)
kill "$kubelet" $(pgrep -x kube-scheduler)
while [[ $(pgrep -x kubelet) == "$kubelet" ]]; do sleep 0.1; done`)
	o.awaitRestart(t, since)
	for i, pod := range o.running(t, "job-name=reports", 4) {
		if pod.UID != pods[i].UID || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			t.Errorf("the pod %s did not outlive kubelet and the scheduler: %+v", pod.Name, pod.Status)
		}
	}
	o.expectUsed(t, 1200)

	// By the default predictor, another pod fits only after these have ended, and once the ordinary one is old enough.
	o.run(t, `kubectl run waits --image none --overrides '{"spec": {"schedulerName": "by-maximum", "containers": [{"name": "main",
  "image": "registry.k8s.io/pause:3.6", "resources": {"requests": {"cpu": "0", "memory": "64Mi", "overcommit.scheduler/millicpu": "500"},
  "limits": {"cpu": "500m", "overcommit.scheduler/millicpu": "500"}}}]}}'
`+until("kubectl get events --field-selector involvedObject.name=waits", "too little unused CPU"))
	o.run(t, "kubectl delete job reports --cascade=foreground")
	o.running(t, "run=waits", 1)
	o.expectUsed(t, 500)
	o.run(t, "kubectl delete pod waits")
	o.expectUsed(t, 0)
}

// expectUsed waits until both profiles have measured the node, and know what overcommitting pods ask for there.
func (o *operator) expectUsed(t *testing.T, millicores int) {
	t.Helper()
	var page string
	err := wait.PollImmediateWithContext(t.Context(), 100*time.Millisecond, stepTimeout, func(ctx context.Context) (_ bool, err error) {
		page, err = o.node.Run(ctx, "curl --silent --insecure --cert /etc/kubernetes/pki/apiserver-kubelet-client.crt "+
			"--key /etc/kubernetes/pki/apiserver-kubelet-client.key https://127.0.0.1:10259/overcommit")
		return err == nil && strings.Count(page, fmt.Sprintf(`"usedMilliCPU":%d,`, millicores)) == 2 && !strings.Contains(page, "unmeasured"), nil
	})
	if t.Log(page); err != nil {
		t.Fatalf("overcommitting pods should ask for %d thousandths of a core: %v", millicores, err)
	}
}

// expectTakenOff waits until what the default predictor takes for the ordinary use now lacks what the pods use.
func (o *operator) expectTakenOff(t *testing.T) {
	t.Helper()
	var query string
	for line := range strings.Lines(string(o.read(t, "/root/queries"))) {
		var entry struct{ Params struct{ Query string } }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if text := entry.Params.Query; strings.Contains(text, "clamp_min") && !strings.Contains(text, "avg_over_time") {
			query = text
		}
	}
	// The answer has use and time.
	query = "sum(rate(container_cpu_usage_seconds_total{id=\"/\"}[150s])) - sum((" + query + ") < 1e6) > 1"
	if err := o.node.WriteFile("/root/query", []byte(query)); err != nil {
		t.Fatal(err)
	}
	t.Log(o.run(t, "query() { curl --silent --data-urlencode query@/root/query http://127.0.0.1:9090/api/v1/query; }\n"+until("query", `"value"`)+"\nquery"))
}

// startPrometheus starts Prometheus on the node, at the address in manifests/config/overcommit.yaml.
func (o *operator) startPrometheus(t *testing.T) {
	t.Helper()
	if err := o.node.WriteFile("/root/prometheus.yaml", fmt.Appendf(nil, measurements, o.node.Address())); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	prometheus := o.node.Command(ctx, filepath.Join(setting(t, "KUBEADM_NODE_PROGRAMS"), "prometheus"), "--config.file=/root/prometheus.yaml",
		"--storage.tsdb.path=/root/prometheus", "--web.listen-address=127.0.0.1:9090", "--log.level=warn")
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = prometheus.Wait()
	})
}

// fill creates an ordinary pod that requests all CPU that the node has left, and uses none until it gets the signal
// CONT. It returns the pod and its request in cores.
func (o *operator) fill(t *testing.T) (corev1.Pod, float64) {
	t.Helper()
	node, err := o.client.CoreV1().Nodes().Get(t.Context(), o.node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	left := node.Status.Allocatable.Cpu().MilliValue()
	pods, err := o.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			left -= container.Resources.Requests.Cpu().MilliValue()
		}
	}
	o.run(t, fmt.Sprintf(`kubectl run ordinary --image none --overrides '{"spec": {`+shell+`,
  "resources": {"requests": {"cpu": "%dm"}}}]}}'`, waitsThenComputes, left))
	return o.running(t, "run=ordinary", 1)[0], float64(left) / 1000
}

// running waits until a number of pods with a label run.
func (o *operator) running(t *testing.T, label string, count int) (pods []corev1.Pod) {
	t.Helper()
	err := wait.PollImmediateWithContext(t.Context(), 100*time.Millisecond, 5*stepTimeout, func(ctx context.Context) (bool, error) {
		list, err := o.client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil {
			return false, nil
		}
		pods = list.Items
		return len(pods) == count && !slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning }), nil
	})
	if err != nil {
		t.Fatalf("the pods %s do not run: %+v", label, pods)
	}
	return pods
}

// cgroup returns the directory of a burstable pod's cgroup, which counts its use of CPU.
func (o *operator) cgroup(t *testing.T, pod corev1.Pod) string {
	t.Helper()
	for _, hierarchy := range []string{"*cpuacct/", ""} { // of cgroup v1, and v2
		found, err := filepath.Glob(o.node.Root() + "/sys/fs/cgroup/" + hierarchy + "kubepods/burstable/pod" + string(pod.UID))
		if err == nil && len(found) > 0 {
			return found[0]
		}
	}
	t.Fatalf("the pod %s has no cgroup", pod.Name)
	return ""
}

// reading is the CPU time that a pod has used, in seconds, and when it was read.
type reading struct {
	at   time.Time
	used float64
}

// readUsed reads the counters of the pods' cgroups.
func readUsed(t *testing.T, cgroups []string) []reading {
	t.Helper()
	var all []reading
	for _, cgroup := range cgroups {
		file, unit := cgroup+"/cpuacct.usage", 1e9
		if _, err := os.Stat(file); err != nil {
			file, unit = cgroup+"/cpu.stat", 1e6
		}
		content, err := os.ReadFile(file)
		at := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(string(content), "usage_usec "), "\n")
		value, err := strconv.ParseFloat(first, 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, reading{at, value / unit})
	}
	return all
}

// second returns the cores that the pods of each cgroup use during the next second.
func second(t *testing.T, cgroups []string) (cores []float64) {
	t.Helper()
	before := readUsed(t, cgroups)
	<-time.After(time.Second)
	for i, after := range readUsed(t, cgroups) {
		cores = append(cores, (after.used-before[i].used)/after.at.Sub(before[i].at).Seconds())
	}
	return cores
}

// measureShares lets the ordinary pod compute for two seconds while the others do. It must get its request in both. If
// other work on the machine leaves less than that to all pods, it must get nearly all of it.
func (o *operator) measureShares(t *testing.T, ordinary corev1.Pod, request float64, pods []corev1.Pod) {
	t.Helper()
	cgroups := []string{o.cgroup(t, ordinary)}
	for _, pod := range pods {
		cgroups = append(cgroups, o.cgroup(t, pod))
	}
	sum := func(values []float64) (sum float64) {
		for _, value := range values {
			sum += value
		}
		return sum
	}
	err := wait.PollImmediateWithContext(t.Context(), time.Second, stepTimeout, func(context.Context) (bool, error) {
		before := second(t, cgroups)
		send(t, cgroups[0], syscall.SIGCONT)
		first, next := second(t, cgroups), second(t, cgroups)
		send(t, cgroups[0], syscall.SIGSTOP)
		t.Logf("cores of the ordinary pod, which requests %.2f, and of the overcommitting pods: before it computes %.3f, in its first second %.3f, "+
			"in the next one %.3f", request, before, first, next)
		satisfied := func(cores []float64) bool { return cores[0] > 0.9*min(request, sum(cores)) }
		return before[0] < 0.1*request && slices.Min(before[1:]) > 0.03 && satisfied(first) && satisfied(next) &&
			slices.Min(next[1:]) > 0 && sum(next[1:]) < sum(before[1:]), nil
	})
	if err != nil {
		t.Errorf("the ordinary pod does not get what it requests: %v", err)
	}
}

// send sends a signal to the processes of a pod.
func send(t *testing.T, cgroup string, signal syscall.Signal) {
	t.Helper()
	lists, err := filepath.Glob(cgroup + "/*/cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		content, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		for process := range strings.FieldsSeq(string(content)) {
			id, err := strconv.Atoi(process)
			if err == nil {
				err = syscall.Kill(id, signal)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}
