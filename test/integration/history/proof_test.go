// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kube-scheduler-fork/build/history"
	"kube-scheduler-fork/test/cluster"
)

var duration = flag.Duration("duration", 3*time.Minute, "how long the workload of TestProof runs")

const (
	// scrape is the interval of Prometheus, and near the largest difference of a time: the series have whole seconds.
	scrape, near = 2 * time.Second, 2 * time.Second
)

// podChanges is a policy of the audit log with what changes pods and nodes, and the API server's answers.
const podChanges = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: RequestResponse, verbs: [create, update, patch, delete], resources: [{resources: [pods, pods/binding, pods/status]}]}
  - {level: Metadata, verbs: [create, delete], resources: [{resources: [nodes]}]}
  - {level: None}
`

// ended are the times and states that a kubelet writes when a pod has ended.
const ended = `
      conditions:
        - {type: Ready, status: "False", reason: PodCompleted, lastTransitionTime: {{ Now | Quote }}}
      containerStatuses:
        - name: pause
          image: pause
          ready: false
          restartCount: 0
          state: {terminated: {exitCode: 0, reason: Completed, startedAt: {{ .status.startTime | Quote }}, finishedAt: {{ Now | Quote }}}}`

// living is a cluster whose pods go after their grace period.
var living = cluster.Shared{
	KWOKConfig:  cluster.PodStages(ended, "delay: {durationMilliseconds: 5000, durationFrom: {expressionFrom: .metadata.deletionTimestamp}}"),
	AuditPolicy: podChanges,
}

// life is what happened to a pod. Its times are zero if they did not come.
type life struct {
	name, node                     string
	created, bound, deleted, ended time.Time
	requests                       string
}

// requested returns the sum of what the containers of a pod request.
func requested(spec *corev1.PodSpec) string {
	sums := corev1.ResourceList{}
	for i := range spec.Containers {
		for name, quantity := range spec.Containers[i].Resources.Requests {
			sum := sums[name]
			sum.Add(quantity)
			sums[name] = sum
		}
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		words = append(words, fmt.Sprintf("%s=%v", name, resource.NewMilliQuantity(new(sums[name]).MilliValue(), resource.DecimalSI)))
	}
	return strings.Join(words, " ")
}

// truth returns the lives of pods according to the audit log, and when nodes went.
func truth(t *testing.T, c *cluster.Cluster) (lived []*life, gone map[string]time.Time) {
	t.Helper()
	now, gone := map[string]*life{}, map[string]time.Time{}
	for _, event := range c.Audit(t) {
		of, at := event.ObjectRef, event.StageTimestamp.Time
		if event.ResponseStatus.Code >= 300 {
			continue
		}
		if of.Resource == "nodes" {
			if event.Verb == "delete" {
				gone[of.Name] = at
			}
			continue
		}
		pod := corev1.Pod{}
		if of.Subresource != "binding" {
			if err := json.Unmarshal(event.ResponseObject.Raw, &pod); err != nil {
				t.Fatalf("%v: %s", err, event.ResponseObject.Raw)
			}
		}
		l := now[of.Namespace+"/"+of.Name]
		switch {
		case event.Verb == "create" && of.Subresource == "":
			l = &life{name: of.Namespace + "/" + pod.Name, created: at, requests: requested(&pod.Spec)}
			now[l.name] = l
			lived = append(lived, l)
		case l == nil: // It was there before the test.
		case of.Subresource == "binding":
			binding := corev1.Binding{}
			if err := json.Unmarshal(event.RequestObject.Raw, &binding); err != nil {
				t.Fatal(err)
			}
			l.node, l.bound = binding.Target.Name, at
		case event.Verb == "delete":
			options := metav1.DeleteOptions{}
			if event.RequestObject != nil {
				if err := json.Unmarshal(event.RequestObject.Raw, &options); err != nil {
					t.Fatal(err)
				}
			}
			if l.deleted.IsZero() {
				l.deleted = at
			}
			// The API server deletes a pod without a node at once.
			if l.ended.IsZero() && (l.node == "" || options.GracePeriodSeconds != nil && *options.GracePeriodSeconds == 0) {
				l.ended = at
			}
		case pod.Status.Phase == corev1.PodSucceeded && l.ended.IsZero():
			l.ended = at
		}
	}
	return lived, gone
}

// livesOf returns the lives of pods according to a history, and when nodes went.
func livesOf(t *testing.T, file string) (header history.Header, lived map[string][]*life, gone map[string]time.Time, gaps []string) {
	t.Helper()
	lived, gone = map[string][]*life{}, map[string]time.Time{}
	latest := func(name string) *life { return lived[name][len(lived[name])-1] }
	for line := range bytes.Lines([]byte(cluster.Read(t, file))) {
		e := struct {
			history.Event
			Pod *corev1.Pod `json:"pod"`
		}{}
		if header.Version == 0 && json.Unmarshal(line, &header) == nil && header.Version > 0 {
			continue
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		at := header.Start.Add(time.Duration(e.Time))
		switch {
		case e.Change == "remove":
			gone[e.Node.(string)] = at
		case e.Pod != nil || e.Like != "":
			l := &life{name: e.Namespace + "/" + e.Name, created: at, node: e.On}
			if e.Pod != nil {
				l.name, l.requests = e.Pod.Namespace+"/"+e.Pod.Name, requested(&e.Pod.Spec)
			} else {
				l.requests = latest(e.Like).requests
			}
			if e.Age != nil {
				l.created = at.Add(-time.Duration(*e.Age))
			}
			lived[l.name] = append(lived[l.name], l)
		case e.Bound != "":
			l := latest(e.Bound)
			l.node, l.bound = e.On, at
		case e.Delete != "":
			latest(e.Delete).deleted = at
		case e.Ended != "":
			latest(e.Ended).ended = at
		case e.Gap != nil:
			gaps = append(gaps, fmt.Sprintf("%v at %v: %s", time.Duration(*e.Gap), time.Duration(e.Time), e.Reason))
		}
	}
	return header, lived, gone, gaps
}

// share is a number of pods of all.
type share struct {
	what      string
	good, all int
	bad       []string
}

func (s *share) add(good bool, format string, arguments ...any) {
	s.all++
	if good {
		s.good++
	} else if len(s.bad) < 5 {
		s.bad = append(s.bad, fmt.Sprintf(format, arguments...))
	}
}

// check fails the test unless a share of the pods is good.
func (s *share) check(t *testing.T, least float64) {
	t.Helper()
	t.Logf("%s: %d of %d", s.what, s.good, s.all)
	if float64(s.good) < least*float64(s.all) || s.all == 0 {
		t.Errorf("%s: %d of %d, for example\n%s", s.what, s.good, s.all, strings.Join(s.bad, "\n"))
	}
}

// agrees compares two times of which one may be to the second.
func agrees(real, recorded time.Time, end time.Time) bool {
	if real.IsZero() || recorded.IsZero() {
		// What is about to be, or has just been, may be missing at the end.
		return real.IsZero() && recorded.IsZero() || end.Sub(real) < near && recorded.IsZero() || real.IsZero() && end.Sub(recorded) < near
	}
	return real.Sub(recorded).Abs() <= near
}

// compare compares a history with the audit log, and returns when it begins.
func compare(t *testing.T, file string, lived []*life, gone map[string]time.Time, from, end time.Time) (start time.Time) {
	t.Helper()
	header, known, went, gaps := livesOf(t, file)
	seen, ends, nodes, bound, deletes, requests :=
		share{what: "pods that lived for two scrapes"}, share{what: "ends"}, share{what: "nodes"},
		share{what: "bindings"}, share{what: "deletions"}, share{what: "requests"}
	brief, missed := 0, 0
	for _, real := range lived {
		if real.created.Before(from) || real.created.After(end) {
			continue
		}
		at := slices.IndexFunc(known[real.name], func(l *life) bool { return real.created.Sub(l.created).Abs() <= max(near, scrape) })
		until := end
		if !real.ended.IsZero() {
			until = real.ended
		}
		if until.Sub(real.created) < 2*scrape {
			if brief++; at < 0 {
				missed++
			}
		} else {
			seen.add(at >= 0, "%s of %v until %v; known %d", real.name, real.created, until, len(known[real.name]))
		}
		if at < 0 {
			continue
		}
		l := known[real.name][at]
		known[real.name] = slices.Delete(known[real.name], at, at+1)
		ends.add(agrees(real.ended, l.ended, end), "%s ended at %v, not %v", real.name, real.ended, l.ended)
		// A pod that was bound before the history begins has its node, and no binding.
		if !real.bound.After(end.Add(-near)) && !real.bound.Before(header.Start.Add(near)) {
			nodes.add(l.node == real.node, "%s was on %q, not %q", real.name, real.node, l.node)
			bound.add(agrees(real.bound, l.bound, end), "%s was bound at %v, not %v", real.name, real.bound, l.bound)
		}
		if !real.deleted.IsZero() && (real.ended.IsZero() || real.deleted.Before(real.ended)) {
			deletes.add(agrees(real.deleted, l.deleted, end), "%s was deleted at %v, not %v (ended %v)", real.name, real.deleted, l.deleted, real.ended)
		}
		requests.add(l.requests == real.requests, "%s requested %s, not %s", real.name, real.requests, l.requests)
	}
	invented := share{what: "pods of the history that were there"}
	for name, others := range known {
		for _, l := range others {
			invented.add(l.created.Before(from.Add(near)) || l.created.After(end.Add(-near)), "%s of %v", name, l.created)
		}
	}
	t.Logf("%s: %d pods lived for less than two scrapes, of which %d are missed; gaps: %q", header.Source, brief, missed, gaps)
	seen.check(t, 0.99)
	for _, s := range []share{ends, nodes, bound, deletes, requests} {
		s.check(t, 1)
	}
	if invented.good < invented.all {
		t.Errorf("%d pods were never there: %q", invented.all-invented.good, invented.bad)
	}
	if len(went) != len(gone) {
		t.Errorf("the nodes %v went, not %v", gone, went)
	}
	for name, at := range gone {
		if !agrees(at, went[name], end) {
			t.Errorf("%s went at %v, not %v", name, at, went[name])
		}
	}
	return header.Start
}

// rank returns the nearest rank of a share, as the simulator does.
func rank(sorted []float64, share float64) float64 {
	return sorted[max(int(math.Ceil(share*float64(len(sorted)))), 1)-1]
}

// replay compares the placements and waiting times of a history with those of the simulator. At least such a share of the
// pods must be on their real node, or on one with its score.
func (s *stand) replay(t *testing.T, file, config string, least float64, lived []*life, from, end time.Time) {
	t.Helper()
	check := map[string]struct {
		Pods, Same, Equal int
		Others            map[string][]string
	}{}
	s.ask(t, &check, "simulate", "check", "--trace", file, "--config", config, "--output", "json")
	for _, c := range check {
		t.Logf("check: %d of %d pods on their node, %d on one of the same score", c.Same, c.Pods, c.Equal)
		if good := c.Same + c.Equal; float64(good) < least*float64(c.Pods) || c.Pods == 0 {
			t.Errorf("%d of %d pods are where the configuration places them: %q", good, c.Pods, c.Others)
		}
	}
	var outcome struct {
		Input, Warnings []string
		Runs            []struct {
			Notes []string
			Pods  []struct {
				Name, Node, Reason string
				Created, Bound     float64
			}
		}
	}
	s.ask(t, &outcome, "simulate", "--trace", file, "--config", config, "--output", "json")
	var real, simulated []float64
	for _, l := range lived {
		if !l.bound.IsZero() && l.created.After(from) && l.bound.Before(end) {
			real = append(real, l.bound.Sub(l.created).Seconds())
		}
	}
	for _, p := range outcome.Runs[0].Pods {
		if p.Node != "" && p.Created > 0 {
			simulated = append(simulated, p.Bound-p.Created)
		}
	}
	slices.Sort(real)
	slices.Sort(simulated)
	t.Logf("%q %q %q", outcome.Input, outcome.Warnings, outcome.Runs[0].Notes)
	for _, share := range []float64{0.5, 0.9} {
		was, is := rank(real, share), rank(simulated, share)
		t.Logf("p%v of waiting: %.2f s of %d pods, and simulated %.2f s of %d", 100*share, was, len(real), is, len(simulated))
		if math.Abs(was-is) > max(2, 0.1*was) {
			t.Errorf("p%v of waiting is %.2f s, and simulated %.2f s", 100*share, was, is)
		}
	}
}

// ask runs kubectl scheduling, and decodes its output unless the value is nil.
func (s *stand) ask(t *testing.T, value any, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), cluster.Program(t, "KUBECTL_SCHEDULING"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig())
	var said bytes.Buffer
	command.Stderr = &said
	began := time.Now()
	output, err := command.Output()
	t.Logf("kubectl scheduling %s, %v, %v of CPU time: %s", strings.Join(arguments, " "), time.Since(began).Round(time.Millisecond),
		command.ProcessState.UserTime()+command.ProcessState.SystemTime(), &said)
	if err == nil && value != nil {
		err = json.Unmarshal(output, value)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// workloads are Deployments, a StatefulSet whose pods have the same names again, a Job each minute, and DaemonSet.
var workloads = controlled("Deployment", "web", "replicas: 12", "1", "") + controlled("Deployment", "api", "replicas: 10", "500m", "") +
	controlled("StatefulSet", "db", "serviceName: db, replicas: 3", "2", "") + controlled("DaemonSet", "agent", "", "100m", "") + `
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: report}, spec: {schedule: "* * * * *", jobTemplate: {spec: {
  parallelism: 6, completions: 6, ttlSecondsAfterFinished: 20, template: ` + fmt.Sprintf(template, "report", cluster.Lasts+": 20s", "restartPolicy: Never,", "2") + `}}}}`

// template is one of pods with a label, annotations, further fields, and a request for CPU.
const template = `{metadata: {labels: {app: %s}, annotations: {%s}}, spec: {terminationGracePeriodSeconds: 5, %s containers: [
  {name: pause, image: pause, resources: {requests: {cpu: %s, memory: 200Mi}}}]}}`

func controlled(kind, name, fields, cpu, annotations string) string {
	return fmt.Sprintf("\n---\n{apiVersion: apps/v1, kind: %s, metadata: {name: %s}, spec: {selector: {matchLabels: {app: %[2]s}}, template: %[4]s, %[3]s}}",
		kind, name, fields, fmt.Sprintf(template, name, annotations, "", cpu))
}

// work does what is due in a second of the workload.
func (s *stand) work(t *testing.T, second int) {
	t.Helper()
	every := func(seconds, at int) bool { return second%seconds == at }
	run := func(name string, pods int, cpu string, last int) {
		s.Create(t, fmt.Sprintf(`{apiVersion: batch/v1, kind: Job, metadata: {name: %s-%d}, spec: {parallelism: %d, completions: %[3]d,
  ttlSecondsAfterFinished: 15, template: %s}}`, name, second, pods, fmt.Sprintf(template, name, fmt.Sprintf("%s: %ds", cluster.Lasts, last), "restartPolicy: Never,", cpu)))
	}
	if every(20, 5) {
		run("etl", 6, "3", 10+second*7%31) // Some wait for others to end.
	}
	if every(15, 7) {
		run("short", 3, "100m", 5)
	}
	if every(60, 30) {
		s.Kubectl(t, t.Context(), "rollout", "restart", "deployment/web")
	}
	if every(90, 45) {
		s.Kubectl(t, t.Context(), "rollout", "restart", "statefulset/db")
	}
	if every(170, 80) {
		s.Kubectl(t, t.Context(), "delete", "node", fmt.Sprint("node-", 6+second/170))
	}
	if every(170, 120) {
		s.CreateNodes(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", 7+second/170)}})
	}
}

// TestProof compares the histories of a busy cluster with its API server's audit log, and their replay with what happened.
func TestProof(t *testing.T) {
	t.Chdir("../../..")
	s := &stand{Cluster: living.Get(t), file: filepath.Join(t.TempDir(), "watched.jsonl")}
	s.AddNodes(t, 6)
	config := cluster.WriteConfig(t, "clientConnection: {qps: 200, burst: 400}\n")
	scheduler := s.StartScheduler(t, cluster.Program(t, "KUBE_SCHEDULER"), config)
	controllers := s.StartControllers(t, "deployment,replicaset,statefulset,daemonset,job,cronjob,garbagecollector,ttl-after-finished,nodelifecycle,podgc",
		"deployments,replicasets,statefulsets,daemonsets,cronjobs,jobs", "--kube-api-qps=200", "--kube-api-burst=400")
	exporter := cluster.FreeAddress(t, "127.0.0.2")
	host, port, _ := net.SplitHostPort(exporter)
	cluster.StartProgram(t, controllers, "kube-state-metrics", "KUBE_STATE_METRICS", "--kubeconfig="+s.Kubeconfig(), "--host="+host, "--port="+port,
		"--telemetry-host="+host, "--telemetry-port=0", "--resources=cronjobs,daemonsets,deployments,jobs,namespaces,nodes,pods,replicasets,statefulsets")
	account := cluster.Account{Namespace: "default", Name: "prometheus"}
	s.CreateAccount(t, account, rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"})
	prometheus := cluster.NewPrometheus(t)
	prometheus.Configure(t, map[string]any{
		"global": map[string]any{"scrape_interval": scrape.String(), "scrape_timeout": scrape.String()},
		"scrape_configs": []any{
			map[string]any{"job_name": "kube-state-metrics", "honor_labels": true, "static_configs": []any{map[string]any{"targets": []string{exporter}}}},
			map[string]any{"job_name": "kube-scheduler", "scheme": "https", "metrics_path": "/metrics/resources",
				"authorization": map[string]any{"credentials": s.Token(t, account)}, "tls_config": map[string]any{"insecure_skip_verify": true},
				"static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(scheduler.URL(), "https://")}}}},
		},
	})
	prometheus.Start(t)
	cluster.Await(t, "series of both", func() error {
		now := float64(time.Now().Unix())
		return cluster.Unless(len(prometheus.Query(t, "kube_node_info", now)) == 6 && len(prometheus.Query(t, `up{job="kube-scheduler"} == 1`, now)) == 1, "there are none")
	})
	from := time.Now()
	s.follow(t)
	s.await(t, 0, "add node-6")
	s.Create(t, workloads)
	for second := 0; time.Since(from) < *duration; second++ {
		next := time.Now().Add(time.Second)
		s.work(t, second)
		time.Sleep(time.Until(next))
	}
	s.end(t, syscall.SIGINT)
	end := time.Now()
	t.Logf("followed: %s", &s.output)
	scraped := filepath.Join(t.TempDir(), "scraped.jsonl")
	s.ask(t, nil, "history", "--prometheus", prometheus.URL(), "--since", time.Since(from).Truncate(time.Second).String(), "--output", scraped)
	lived, gone := truth(t, s.Cluster)
	// Series have whole seconds, in which the order of several pods is unknown.
	for file, least := range map[string]float64{s.file: 0.95, scraped: 0.9} {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			start := compare(t, file, lived, gone, from, end)
			s.replay(t, file, config, least, lived, start, end)
		})
	}
}
