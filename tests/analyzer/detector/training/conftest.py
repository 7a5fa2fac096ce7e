import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Tests run beside each other; torch's threads would wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
