// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"fmt"
	"math"
	"math/rand"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/simulation/input"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

const (
	// begins is when the first pods of a load come: NodeLoad has measured the nodes by then.
	begins = 10 * time.Minute
	// step is the period in which use changes. It is that of the simulator's measurements.
	step = 15 * time.Second
	cpu  = corev1.ResourceCPU
)

// wave is a use that oscillates around a mean.
type wave struct {
	mean          float64 // in millicores
	swing         float64 // the amplitude as a share of the mean
	period, phase time.Duration
}

// use returns the use of a pod that runs for a time. It uses as much memory as it requests.
func (w wave) use(runs time.Duration, pod *corev1.Pod) []input.Use {
	var uses []input.Use
	for at := time.Duration(0); at < runs; at += step {
		milliCPU := w.mean
		if w.swing != 0 {
			milliCPU *= 1 + w.swing*math.Sin(2*math.Pi*float64(at+w.phase)/float64(w.period))
		}
		uses = append(uses, input.Use{After: at, Resources: corev1.ResourceList{
			cpu: *resource.NewMilliQuantity(int64(milliCPU), resource.DecimalSI), corev1.ResourceMemory: pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory],
		}})
	}
	return uses
}

// between returns a random number.
func between(random *rand.Rand, from, to float64) float64 { return from + random.Float64()*(to-from) }

// duration returns a random duration.
func duration(random *rand.Rand, from, to time.Duration) time.Duration {
	return time.Duration(between(random, float64(from), float64(to))).Round(6 * time.Second)
}

// loaded returns a scenario with 60 nodes with 8 cores each. One of four is busy by itself: by a pod without requests.
func loaded(random *rand.Rand, length time.Duration) scenario {
	s := scenario{length: begins + length}
	for i := range 60 {
		name := fmt.Sprintf("node-%d", i)
		s.nodes = append(s.nodes, node(name, 8, 32, map[string]string{
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%c", 'a'+i%3), corev1.LabelTopologyRegion: "region",
		}))
		share := between(random, 0.05, 0.25)
		if random.Intn(4) == 0 {
			share = between(random, 0.45, 0.6)
		}
		pod := st.MakePod().Name("of-"+name).Req(requests(0, 0)).NodeAffinityIn(corev1.LabelHostname, []string{name}).Obj()
		base := s.add(0, 0, pod)
		base.Owner, base.Use = "DaemonSet/base", wave{math.Round(share * 8000), 0.2, duration(random, 20*time.Minute, 60*time.Minute),
			duration(random, 0, 60*time.Minute)}.use(s.length, pod)
	}
	return s
}

// job adds a pod with its use; at is the time since the beginning of the load. It does nothing after the end. The owner
// is the Deployment of the pod's job, as with Apache Flink; batch pods with equal requests come from one CronJob.
func (s *scenario) job(at, runs time.Duration, pod *st.PodWrapper, milliCPU int, use wave) {
	if begins+at < s.length {
		w := s.add(begins+at, runs, pod.Req(requests(milliCPU, 2*milliCPU)).Obj())
		w.Owner, w.Use = "Deployment/"+w.Pod.Labels["app"], use.use(runs, w.Pod)
		if w.Owner == "Deployment/" {
			w.Owner = fmt.Sprintf("Job/requests-%d-1", milliCPU)
		}
	}
}

// mixed are batch pods with wrong requests. They are created in bursts of one kind, like the pods of one workload, and
// their requests do not correlate with their use.
func mixed(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	s := loaded(random, 50*time.Minute)
	for at := time.Duration(0); at < 45*time.Minute; at += duration(random, 12*time.Second, 72*time.Second) {
		var request int
		var least, most float64
		switch kind := random.Intn(20); {
		case kind < 8: // requests much and uses little
			request, least, most = 1000, 100, 300
		case kind < 15: // uses its request
			request, least, most = 500, 400, 600
		default: // requests little and uses much
			request, least, most = 250, 600, 1400
		}
		for range 1 + random.Intn(12) {
			pod := st.MakePod().Name(fmt.Sprintf("batch-%d", len(s.pods)))
			s.job(at, duration(random, 20*time.Minute, 40*time.Minute), pod, request, wave{math.Round(between(random, least, most)), 0.1,
				duration(random, 5*time.Minute, 20*time.Minute), duration(random, 0, 20*time.Minute)})
		}
	}
	return s
}

// volumes are the mean uses of the task managers of streaming jobs, in millicores.
var volumes = []float64{150, 300, 600, 1200, 2400}

// tide returns the wave of a job: the volume of its data rises and falls.
func tide(random *rand.Rand) wave {
	return wave{swing: between(random, 0.2, 0.6), period: duration(random, 15*time.Minute, 40*time.Minute), phase: duration(random, 0, 40*time.Minute)}
}

// streaming are Apache Flink jobs: a job manager, and soon the job's number of task managers. All task managers have the
// same request. Their use follows the volume of the job's data, which differs between jobs by a factor of more than ten,
// rises and falls for all task managers of a job together, and is distributed among them unevenly.
func streaming(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	s := loaded(random, 50*time.Minute)
	for at, n := time.Duration(0), 0; at < 40*time.Minute; at += duration(random, 36*time.Second, 120*time.Second) {
		runs := duration(random, 20*time.Minute, 50*time.Minute)
		pod := func(name string) *st.PodWrapper {
			return st.MakePod().Name(fmt.Sprintf("job-%d-%s", n, name)).Label("app", fmt.Sprint("job-", n))
		}
		s.job(at, runs, pod("manager"), 1000, wave{mean: 100})
		volume := volumes[random.Intn(5)]
		use := tide(random)
		for task := range 3 + random.Intn(10) {
			use.mean = math.Round(volume * between(random, 0.7, 1.3))
			s.job(at+30*time.Second, runs-30*time.Second, pod(fmt.Sprint("task-", task)), 1000, use)
		}
		n++
	}
	return s
}

const jobManager, taskManager = "jobmanager", "taskmanager"

// graphs are streaming jobs whose task managers send data to each other, in three zones. Every other job creates all of
// its pods at once; in the others the task managers follow the job manager. One of four task managers ends early, and is
// replaced a minute later.
func graphs(seed int64) scenario {
	random := rand.New(rand.NewSource(seed))
	s := loaded(random, 40*time.Minute)
	for at, n := time.Duration(0), 0; at < 32*time.Minute; at += duration(random, 24*time.Second, 96*time.Second) {
		pod := func(component, name string) *st.PodWrapper {
			return st.MakePod().Name(fmt.Sprintf("job-%d-%s", n, name)).Label("app", fmt.Sprint("job-", n)).Label("component", component).
				Label("type", "flink-native-kubernetes").SchedulerName("streaming")
		}
		runs, later := duration(random, 15*time.Minute, 30*time.Minute), time.Duration(n%2)*30*time.Second
		s.job(at, runs, pod(jobManager, "manager"), 500, wave{mean: 100})
		volume := volumes[random.Intn(4)]
		use := tide(random)
		for task := range 4 + random.Intn(9) {
			name, from, lives := fmt.Sprint("task-", task), at+later, runs-later
			use.mean = math.Round(volume * between(random, 0.7, 1.3))
			if random.Intn(4) == 0 {
				early := duration(random, runs/4, runs/2)
				s.job(from, early, pod(taskManager, name), 500, use)
				name, from, lives = name+"-again", from+early+time.Minute, lives-early-time.Minute
			}
			s.job(from, lives, pod(taskManager, name), 500, use)
		}
		n++
	}
	return s
}

// graphsByHand makes each pod prefer the zone of its job, and with less weight its node.
func graphsByHand(seed int64) scenario {
	s := graphs(seed)
	for _, event := range s.pods {
		pod := event.Pods.Pod
		if pod.Labels["app"] == "" {
			continue
		}
		prefers := func(weight int32, key string) corev1.WeightedPodAffinityTerm {
			selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
			return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: selector, TopologyKey: key}}
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			prefers(100, corev1.LabelTopologyZone), prefers(20, corev1.LabelHostname),
		}}}
	}
	return s
}
