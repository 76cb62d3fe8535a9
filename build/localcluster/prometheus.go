// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/build/localcluster/supervisor"
)

const (
	nextPrometheus = "see its last log lines above; or start your own Prometheus at the endpoint in the configuration"
	// sampled is the PromQL for the number of nodes with enough samples for a rate.
	sampled = `count(count_over_time(node_time_seconds[1m]) >= 3) or vector(0)`
	// dialDeadline limits the check whether something listens at an endpoint.
	dialDeadline = time.Second
)

// UnusedEndpoint returns the first endpoint of NodeLoad in a KubeSchedulerConfiguration that is plain HTTP on loopback,
// and at which nothing listens; empty if there is none.
func UnusedEndpoint(configFile string) (string, error) {
	config, err := readSchedulerConfig(configFile)
	if err != nil {
		return "", err
	}
	for _, endpoint := range config.loadEndpoints() {
		address, err := url.Parse(endpoint)
		if err != nil || address.Scheme != "http" || !isLoopback(address.Hostname()) || address.Port() == "" {
			continue
		}
		connection, err := net.DialTimeout("tcp", address.Host, dialDeadline)
		if err != nil {
			return endpoint, nil
		}
		connection.Close()
	}
	return "", nil
}

// loadEndpoints returns the endpoints of Prometheus in the arguments of NodeLoad, in all profiles.
func (s *schedulerConfig) loadEndpoints() []string {
	var all []string
	profiles, _, _ := unstructured.NestedSlice(s.content.Object, "profiles")
	for _, profile := range profiles {
		fields, _ := profile.(map[string]any)
		plugins, _, _ := unstructured.NestedSlice(fields, "pluginConfig")
		for _, plugin := range plugins {
			fields, _ := plugin.(map[string]any)
			if fields["name"] == "NodeLoad" {
				endpoints, _, _ := unstructured.NestedStringSlice(fields, "args", "prometheus", "endpoints")
				all = append(all, endpoints...)
			}
		}
	}
	return all
}

// Prometheus is a running Prometheus that scrapes the metrics of the fake nodes.
type Prometheus struct {
	plane   *ControlPlane
	process *supervisor.Process
}

// StartPrometheus starts a Prometheus at an endpoint on loopback, and waits until it has enough samples of the nodes
// that exist now. It does not scrape nodes that are created later. There can be one at a time.
func (c *ControlPlane) StartPrometheus(ctx context.Context, executable, endpoint string) (*Prometheus, error) {
	const name = "prometheus"
	if err := checkExecutable(name, executable, nextPrometheus); err != nil {
		return nil, err
	}
	address, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	content, err := yaml.Marshal(c.scrapes(nodes.Items))
	if err != nil {
		return nil, err
	}
	config, err := c.write(name+".yaml", content)
	if err != nil {
		return nil, err
	}
	data := c.file(name)
	// The samples of an earlier one are of other nodes.
	if err := os.RemoveAll(data); err != nil {
		return nil, err
	}
	p, _, err := c.supervisor.Start(ctx, supervisor.Component{
		Name:        name,
		Executable:  executable,
		Directory:   c.Folder(),
		Environment: c.environment,
		Listens:     true,
		Address:     strings.TrimSuffix(endpoint, "/"),
		Ready:       "/-/ready",
		Also: func(get func(string) ([]byte, error)) error {
			answer, err := get("/api/v1/query?" + url.Values{"query": {sampled}}.Encode())
			if err != nil {
				return err
			}
			return areSampled(answer, len(nodes.Items))
		},
		Next: nextPrometheus,
		Arguments: func(int) []string {
			return []string{
				"--config.file=" + config,
				"--storage.tsdb.path=" + data,
				"--web.listen-address=" + address.Host,
				// Its path is the prefix of all paths.
				"--web.external-url=" + endpoint,
				"--log.level=warn",
			}
		},
	})
	if err != nil {
		return nil, err
	}
	return &Prometheus{c, p}, nil
}

// Stop ends Prometheus; the control plane keeps running.
func (p *Prometheus) Stop() error { return p.plane.supervisor.End(p.process) }

// scrapes returns the configuration of Prometheus. The label instance is the node's name.
func (c *ControlPlane) scrapes(nodes []corev1.Node) any {
	kwok := net.JoinHostPort(supervisor.Loopback, strconv.Itoa(c.kwokPort))
	var targets []any
	for _, node := range nodes {
		targets = append(targets, map[string]any{
			"targets": []string{kwok},
			"labels":  map[string]string{"__metrics_path__": fmt.Sprintf(metricsPath, node.Name), "instance": node.Name},
		})
	}
	return map[string]any{
		"global": map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []any{map[string]any{
			"job_name": "node-exporter", "scheme": "https", "static_configs": targets,
			"tls_config": map[string]any{"ca_file": c.file(authorityFile)},
		}},
	}
}

// areSampled returns an error until an answer to the query sampled has the wanted number of nodes.
func areSampled(content []byte, want int) error {
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.Unmarshal(content, &answer); err != nil {
		return err
	}
	for _, result := range answer.Data.Result {
		if result.Value[1] == strconv.Itoa(want) {
			return nil
		}
	}
	return fmt.Errorf("the metrics of not all %d nodes are scraped yet: %s", want, content)
}
