// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"kube-scheduler-fork/test/cluster"
)

// The node in the files works before each scrape, and all its counters grow with its work: by what one unit of work
// takes, in the tables below. The counter of context switches counts the work itself. Counters begin far above zero, as
// on a node that has run for long.
const (
	workSeries  = `node_context_switches_total{instance="files"}`
	clockSeries = `node_time_seconds{instance="files"}`
	workBefore  = 1 << 30
	// The loads by one unit of work per second. The network is eth0, which sends 40 MB of 125 MB; the disk is sda.
	idleOfWork, networkOfWork, diskOfWork = (0.2 + 0.6) / 2, 40.0 / 125, 0.5
	memoryBefore, memoryOfWork            = 0.25, 1.0 / 1024
)

// networkDevices are the node's network devices. speed is the content of the file in sysfs, in Mbit/s; a device without
// it has none that can be read. receives and sends are in MB.
var networkDevices = []struct {
	name, speed     string
	receives, sends int
}{
	{"eth0", "1000", 5, 40}, {"eth1", "10000", 80, 8}, {"eth2", "-1", 500, 500}, {"eth3", "", 500, 500},
	// The ends of pods' devices: Calico's, Flannel's, OVN-Kubernetes', Antrea's and Kube-OVN's. A bridge, loopback, a VPN.
	{"cali0a1b2c3d4e5", "10000", 900, 900}, {"veth0a1b2c3d", "10000", 900, 900}, {"0a1b2c3d4e5f607", "10000", 900, 900},
	{"coredns--d0c58e", "10000", 900, 900}, {"0a1b2c3d4e5f_h", "10000", 900, 900}, {"cni0", "10000", 900, 900},
	{"lo", "", 5000, 5000}, {"tailscale0", "10", 5, 5},
}

// disks are the node's disks, their partitions and other block devices, with the milliseconds that they are busy.
var disks = map[string]int{"sda": 500, "sda1": 500, "dm-0": 400, "nvme0n1": 100, "nvme0n1p1": 100, "loop0": 600, "zram0": 600}

// newFiles starts a node_exporter on directories like /proc and /sys. It returns the address of a server that does some
// work and then forwards a scrape to the exporter. Each eighth scrape fails.
func newFiles(t *testing.T) string {
	t.Helper()
	proc, sys := t.TempDir(), t.TempDir()
	static := map[string]string{"devices/system/cpu/cpu0/online": "1\n"}
	for _, device := range networkDevices {
		if static["class/net/"+device.name+"/mtu"] = "1500\n"; device.speed != "" {
			static["class/net/"+device.name+"/speed"] = device.speed + "\n"
		}
	}
	writeFiles(t, sys, static)
	writeFiles(t, proc, procAfter(0))
	exporter := startExporter(t, "--path.procfs="+proc, "--path.sysfs="+sys, "--path.udev.data="+t.TempDir(),
		"--collector.disable-defaults", "--collector.cpu", "--collector.stat", "--collector.meminfo", "--collector.time",
		// By default it does not read /proc/net/dev, but asks the kernel.
		"--collector.netdev", "--no-collector.netdev.netlink", "--collector.netclass", "--collector.diskstats")
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: exporter})
	var mutex sync.Mutex
	scrapes, work := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		if scrapes++; scrapes%8 == 0 {
			http.Error(w, "this scrape should fail", http.StatusServiceUnavailable)
			return
		}
		work += 1 + scrapes%2 // the loads vary
		writeFiles(t, proc, procAfter(work))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// startExporter starts node_exporter and returns its address.
func startExporter(t *testing.T, arguments ...string) string {
	t.Helper()
	address := cluster.FreeAddress(t, "127.0.0.2")
	t.Cleanup(cluster.StartServer(t, filepath.Join(t.TempDir(), "node_exporter.log"), "http://"+address,
		cluster.Program(t, "NODE_EXPORTER"), append(arguments, "--web.listen-address="+address)...))
	return address
}

// procAfter returns the files in /proc after some work.
func procAfter(work int) map[string]string {
	network, disk := "the first line\nthe second line\n", ""
	for _, device := range networkDevices {
		network += fmt.Sprintf("%s: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n", device.name,
			workBefore+device.receives*work*1e6, workBefore+device.sends*work*1e6)
	}
	for name, busy := range disks {
		disk += fmt.Sprintf("8 0 %s 0 0 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n", name, workBefore+busy*work)
	}
	const memory = 64 << 20 // kB
	return map[string]string{
		"net/dev": network, "diskstats": disk,
		// In hundredths of a second: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice.
		"stat": fmt.Sprintf("cpu0 %d 0 0 %d %d 0 0 %d 0 0\ncpu1 %d 0 0 %d 0 0 0 0 0 0\nctxt %d\n",
			5*work, workBefore+20*work, 20*work, 10*work, 5*work, workBefore+60*work, workBefore+work),
		"meminfo": fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\n", memory, memory*3/4-work*memory/1024),
	}
}

func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Error(err)
		}
	}
}
